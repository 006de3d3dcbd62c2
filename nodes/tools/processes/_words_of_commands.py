"""Finds where a command would run what a model wrote: as its program, as a variable, or as code.

The words are those of a template, so all of this is known when the tool is defined.  What a program
makes of an argument that is data for it, such as a file's name, is the program's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePosixPath

VALUE = "\0"
"""Stands for a value in the text of a word: no argument can hold it."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHELLS = _words("ash bash csh dash fish ksh mksh pwsh rbash sh tcsh yash zsh")
_CODE_OPTIONS = {
    **dict.fromkeys(_SHELLS, re.compile(r"-[A-Za-z]*c|--command", re.IGNORECASE)),
    "python": re.compile(r"-[A-Za-z]*c"),
    "pypy": re.compile(r"-[A-Za-z]*c"),
    "perl": re.compile(r"-[A-Za-z0-9]*[eE]|-[mM].*"),
    "ruby": re.compile(r"-[A-Za-z0-9]*e"),
    "node": re.compile(r"-p?e|-p|--eval|--print"),
    "deno": re.compile(r"eval"),
    "bun": re.compile(r"-p?e|-p|--eval|--print"),
    "php": re.compile(r"-[rBRE]"),
    "lua": re.compile(r"-e"),
    "Rscript": re.compile(r"-e"),
    "osascript": re.compile(r"-e"),
    "tclsh": re.compile(r"-c"),
    "expect": re.compile(r"-c"),
}  # fmt: skip
"""The options of interpreters whose argument is code."""
_WITH_ARGUMENT = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), ("-v", "-F", "-f", "-e")),
    **dict.fromkeys(("sed", "gsed"), ("-e", "-f", "-l", "--expression", "--file")),
}
"""Programs whose first argument is code, and those of their options that take an argument."""
_EVALUATORS = _words(
    "eval . source trap alias let [[ (( read mapfile readarray getopts unset export readonly local "
    "declare typeset compgen complete ssh rsh mosh su watch at batch"
)
"""Commands that read their arguments as code, as names of variables (where a subscript is code in
bash), or give them to another shell."""
_PROGRAMS = _words("ssh rsh mosh su watch at batch eval source trap")
"""Those that mean the same behind another command; a ``.`` there is a folder."""
_NAMES = {"test": "-v", "[": "-v", "printf": "-v", "wait": "-p"}
"""Commands of a shell, and the option whose argument is the name of a variable."""
_WRAPPERS = {
    **dict.fromkeys(
        _words(
            "builtin busybox command coproc doas entr env exec find gdb ionice ltrace "
            "nice nohup nsenter numactl parallel runuser script setpriv setsid stdbuf strace sudo "
            "systemd-run time torsocks unshare xargs xvfb-run"
        ),
        0,
    ),
    **dict.fromkeys(_words("chroot chrt flock taskset timeout"), 1),
}
"""Commands that run the command in their arguments, and how many arguments come before it."""
_RESERVED = _words("! { } if then else elif fi while until do done esac coproc time")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[.*\])?\+?=", re.DOTALL)
_NAME = re.compile(r"[A-Za-z_]\w*")
_SET_BY_SHELLS = (*"123456789@*_", "REPLY", "MAPFILE", "OPTARG")
"""Variables that may hold a value in any line: arguments of ``set --`` and of functions, the last
argument, and where ``read``, ``mapfile`` and ``getopts`` write."""
_EXEC = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
_VERSIONED = re.compile(r"[0-9.]+\Z")


@dataclass(slots=True)
class Word:
    """A word of a command, without its quotes."""

    text: str = ""
    """What the author wrote, with `VALUE` where a value is."""
    names: set[str] = field(default_factory=set)
    """The names of the values in it that the model chooses freely."""
    variables: set[str] = field(default_factory=set)
    """The shell's variables in it."""

    def write(self, text: str) -> None:
        """Add text of the author's."""
        self.text += text

    def note_variable(self, name: str) -> None:
        """Note a variable of the shell's; an empty name is none."""
        if name:
            self.variables.add(name)

    def write_value(self, names: Iterable[str]) -> None:
        """Add a value, or the output of a command with values."""
        self.text += VALUE
        self.names.update(names)


def problem_of(commands: Sequence[Sequence[Word]], written: Iterable[str] = ()) -> str:
    """Return where a template would run what the model wrote; empty for nowhere.

    Args:
        commands: Its simple commands, in order, with the values that the model chooses freely.
        written: The files that its commands write to.
    """
    if not any(word.names for command in commands for word in command):
        return ""
    problem = _trace(commands) or next(filter(None, map(_problem, commands)), "")
    return problem or _problem_of_files(commands, written)


def _problem_of_files(commands: Sequence[Sequence[Word]], written: Iterable[str]) -> str:
    """Find a file that a command writes and another one runs."""
    files = {*written}
    for command in commands:
        if command and _program(command[0]) == "tee":
            files.update(word.text for word in command[1:])
    names = {PurePosixPath(file).name for file in files}
    for command in commands:
        before = ""
        for word in _after_reserved(command):
            runs = not before or before in _CODE_OPTIONS or before in (".", "source")
            if runs and PurePosixPath(word.text).name in names:
                return f"{word.text}, which may hold values, would be read as code"
            before = before if _is_option(word) else _program(word)
    return ""


def _trace(commands: Sequence[Sequence[Word]]) -> str:
    """Give the variables that a loop or ``read`` sets from values the names of those values.

    Returns:
        Why a value may not be in one of them; empty for no reason.
    """
    tainted = set(_SET_BY_SHELLS)
    for command in commands:
        words = _after_reserved(command)
        program = words[0].text if words else ""
        names: set[str] = set()
        if program in ("for", "select") and len(words) > 1 and any(w.names for w in words[2:]):
            names.add(words[1].text)
        if program in ("read", "mapfile", "readarray"):
            names.update(word.text for word in words[1:] if not _is_option(word))
        for name in names:
            if name != name.lower():
                return f"{name} would hold a value: write it small, as shells read large ones"
        tainted |= names
    for command in commands:
        for word in command:
            match = _ASSIGNMENT.match(word.text)
            subscript = _NAME.findall(match[2] or "") if match else ()
            found = tainted.intersection([*word.variables, *subscript])
            word.names.update(f"${variable}" for variable in found)
    return ""


def _problem(command: Sequence[Word]) -> str:
    words = _after_reserved(command)
    while words and (match := _ASSIGNMENT.match(words[0].text)):
        if words[0].names:
            return f"{_one(words[0])} would set the variable {match[1]}"
        words = words[1:]
    if not words:
        return ""
    if words[0].names:
        return f"{_one(words[0])} would choose the program"
    if words[0].text in ("for", "select"):
        return f"{_one(words[1])} would name a variable" if _has(words[1:2]) else ""
    if words[0].text == "case":
        return ""
    return _problem_of_arguments(words)


def _problem_of_arguments(words: Sequence[Word]) -> str:
    wraps = in_shell = False
    for number, word in enumerate(words):
        program, rest = _program(word), words[number + 1 :]
        is_program = wraps or number == 0
        if is_program and program in _WRAPPERS and (found := _wrapped(program, rest)):
            return found
        evaluates = program in _EVALUATORS and (number == 0 or in_shell or program in _PROGRAMS)
        if number == 0:
            wraps, in_shell = program in _WRAPPERS, program in ("builtin", "command", "coproc")
        if program == "find":
            wraps = False
        wraps = wraps or word.text in _EXEC
        if is_program and evaluates and (found := _evaluated(program, rest)):
            return found
        if is_program and program in _NAMES and (found := _named(program, rest)):
            return found
        if is_program and program in _WITH_ARGUMENT and (found := _scripted(program, rest)):
            return found
        if program in _CODE_OPTIONS and (found := _interpreted(program, rest, is_program)):
            return found
        if program in _SHELLS and words[0].text in ("xargs", "parallel"):
            return f"{words[0].text} would write values into the code of {program}"
    return ""


def _wrapped(program: str, rest: Sequence[Word]) -> str:
    """Find a value that would choose the command that another one runs.

    Options may take an argument, so a word after an option may be either that or the command.
    """
    if program == "find":
        runs = [rest[i + 1] for i, word in enumerate(rest[:-1]) if word.text in _EXEC]
        return next((f"{_one(one)} would choose the program" for one in runs if one.names), "")
    before = _WRAPPERS[program]
    after_option = False
    for word in rest:
        match = _ASSIGNMENT.match(word.text)
        if word.names:
            sets = match and f"set the variable {match[1]}"
            return f"{_one(word)} would {sets or f'choose what {program} runs'}"
        if match or _is_option(word):
            after_option = word.text != "--" and not match
        elif not after_option and (before := before - 1) < 0:
            return ""
        else:
            after_option = False
    return ""


def _evaluated(program: str, rest: Sequence[Word]) -> str:
    """Find a value in what a shell evaluates, or a variable, which may hold one."""
    for word in rest:
        if word.names or (program == "eval" and word.variables):
            return f"{_one(word)} would be read as code by {program}"
        if program in (".", "source") and word.text.startswith(("/dev/", "/proc/")):
            return f"values would be read as code by {program}"
    return ""


def _named(program: str, rest: Sequence[Word]) -> str:
    """Find a value that would name a variable: bash evaluates its subscript."""
    option = _NAMES[program]
    for before, word in pairwise((Word(), *rest)):
        if word.names and (before.text == option or word.text.startswith(option)):
            return f"{_one(word)} would name a variable"
    return ""


def _scripted(program: str, rest: Sequence[Word]) -> str:
    """Find a value in the code of awk or sed: their first argument, or that of an option."""
    is_argument = is_code = has_code = False
    for word in rest:
        found = f"{_one(word)} would be code of {program}" if word.names else ""
        if is_argument:
            if found and is_code:
                return found
            is_argument = is_code = False
        elif _is_option(word):
            is_code = word.text.startswith(("-e", "-f", "--"))
            if found and is_code:
                return found
            has_code = has_code or is_code
            is_argument = word.text in _WITH_ARGUMENT[program]
        elif has_code:
            return ""
        else:
            return found
    return ""


def _interpreted(program: str, rest: Sequence[Word], is_program: bool) -> str:
    """Find a value in the code of an interpreter; further arguments are data for that code."""
    option = _CODE_OPTIONS[program]
    codes = has_script = False
    before = ""
    for word in rest:
        text, before = before, word.text
        if _is_option(word):
            is_code = option.match(word.text) is not None
            if word.names and (is_code or not has_script):
                return f"{_one(word)} would be an option of {program}"
            codes = codes or is_code
        elif codes:
            read = word.names or word.variables
            return f"{_one(word)} would be code of {program}" if read else ""
        elif is_program and not has_script:
            if word.names:
                return f"{_one(word)} would choose what {program} runs"
            if not word.text.strip("-") or word.text.startswith(("/dev/", "/proc/")):
                break
            if not text.startswith(("-", "+")):
                return ""
            has_script = text == "-m" or "." in word.text or "/" in word.text
    reads_stdin = is_program and not (codes or has_script)
    return f"values would be read as code by {program}" if reads_stdin else ""


def _is_option(word: Word) -> bool:
    return word.text.startswith(("-", "+")) and word.text != "-"


def _after_reserved(command: Sequence[Word]) -> Sequence[Word]:
    start = 0
    while start < len(command) and command[start].text in _RESERVED:
        start += 1
    return command[start:]


def _program(word: Word) -> str:
    name = PurePosixPath(word.text).name or word.text
    return name if name in _EVALUATORS else _VERSIONED.sub("", name) or name


def _has(words: Sequence[Word]) -> bool:
    return any(word.names for word in words)


def _one(word: Word) -> str:
    names = sorted(word.names) or [f"${name}" for name in sorted(word.variables)]
    return " and ".join(name if name.startswith("$") else f"{{{name}}}" for name in names)
