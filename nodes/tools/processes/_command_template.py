"""Templates of commands: their parameters, their values, and what a value may not be.

The values of a line for ``/bin/sh`` reach it in environment variables and never as text.  The line
is read as a shell reads it, to learn whether a value stands bare, in double quotes or in single
ones; each place becomes a reference to a variable that works there.  Where that is uncertain or a
value would be code, the tool is refused when it is defined.
"""

from __future__ import annotations

import inspect
import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, NoReturn, get_args, get_origin

from .._errors import BadArgumentsError, ToolDefinitionError
from ._words_of_commands import VALUE, Word, problem_of

_FORMATTER = string.Formatter()


@dataclass(frozen=True, slots=True)
class Field:
    """A place of a template that a value fills."""

    name: str
    conversion: str | None
    spec: str

    @property
    def is_plain(self) -> bool:
        """Whether the value is written as it is."""
        return not self.spec and self.conversion is None


def parse_template(part: str) -> list[str | Field]:
    """Return the text and the values of a template, in order.

    Raises:
        ToolDefinitionError: It is not a template.
    """
    parts: list[str | Field] = []
    try:
        parsed = list(_FORMATTER.parse(part))
    except ValueError as error:
        raise ToolDefinitionError(
            f"{part!r} is not a template: {error}; write {{{{ for a brace"
        ) from None
    for text, name, spec, conversion in parsed:
        if text:
            parts.append(text)
        if name is None:
            continue
        if not name.isidentifier() or "{" in (spec or ""):
            raise ToolDefinitionError(f"{part!r}: {name!r} is no name; write {{{{ for a brace")
        parts.append(Field(name, conversion, spec or ""))
    return parts


def text_of(one: Field, value: Any) -> str:
    """Return a value as text inside a word; the items of a list stand side by side."""
    if one.is_plain and isinstance(value, (list, tuple)):
        return " ".join(map(str, value))
    if one.is_plain and value is None:
        return ""
    text: str = _FORMATTER.format_field(_FORMATTER.convert_field(value, one.conversion), one.spec)
    return text


def texts_of(one: Field, value: Any) -> list[str]:
    """Return a value as words of its own: one for each item of a list, none for ``None``."""
    if one.is_plain and value is None:
        return []
    if one.is_plain and isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    return [text_of(one, value)]


_PREFIX = "bargein_value_"
"""The variables' names; no program reads them by itself."""
_FILE_NUMBER = re.compile(r"[ \t]*([0-9]+-?|-)(?![^\s;|&()<>])")
_EVALUATES = re.compile(r"!|#?[\w@*]+(\[|:(?![-?+])|[@=])")
"""What ``${`` begins with if bash evaluates a variable in it, or sets one."""
_VARIABLE = re.compile(r"[A-Za-z_]\w*|(?<=[${!])[1-9@*]")
_OPEN = "a quote or a bracket in it is never closed"

_Kind = Literal["line", "group", "substitution", "double", "braces", "arithmetic"]
_Quoting = Literal["bare", "double", "single"]


class _Command:
    """The words of a command that is being read."""

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.targets: list[Word] = []
        self.word: Word | None = None
        self.is_target = False
        """Whether the word is where a redirection goes."""

    def current(self) -> Word:
        """Return the word that is being read; begin one if there is none."""
        if self.word is None:
            self.word = Word()
        return self.word

    def end_word(self) -> None:
        """Add the word to the command, unless a redirection goes to it."""
        if self.word is not None:
            (self.targets if self.is_target else self.words).append(self.word)
            self.word, self.is_target = None, False


class ShellTemplate:
    """A line with values.

    Attributes:
        exposed: The values that begin a word, which a program could read as an option.
    """

    def __init__(
        self, template: str, parts: Sequence[str | Field], is_chosen: Callable[[str], bool]
    ) -> None:
        """Read a line.

        Args:
            template: The line as its author wrote it, for errors.
            parts: Its text and its values, in order.
            is_chosen: Whether the model chooses the value of a name freely.

        Raises:
            ToolDefinitionError: A value would be code, or stands where a shell's quoting is
                uncertain.
        """
        self.exposed: set[str] = set()
        self._template = template
        self._is_chosen = is_chosen
        self._fields = [part for part in parts if isinstance(part, Field)]
        self._text = "".join(VALUE if isinstance(part, Field) else part for part in parts)
        self._line: list[str | tuple[Field, _Quoting]] = []
        self._commands: list[list[Word]] = []
        self._written: set[str] = set()
        self._at = 0
        if not self._fields:
            self._line.append(self._text)
            return
        if self._text.count(VALUE) > len(self._fields):
            self._refuse("it has a null character")
        self._read_commands("line")
        if found := problem_of(self._commands, self._written):
            self._refuse(found)

    def fill(self, values: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
        """Return the line, and the environment variables that hold the values."""
        variables: dict[str, str] = {}

        def reference(text: str) -> str:
            name = f"{_PREFIX}{len(variables) + 1}"
            variables[name] = text
            return f"${{{name}}}"

        line = []
        for piece in self._line:
            if isinstance(piece, str):
                line.append(piece)
                continue
            one, quoting = piece
            value = values[one.name]
            if quoting == "bare":
                line.append(" ".join(f'"{reference(text)}"' for text in texts_of(one, value)))
            elif quoting == "double":
                line.append(reference(text_of(one, value)))
            else:
                line.append(f"'\"{reference(text_of(one, value))}\"'")
        return "".join(line), variables

    # --- reading the line: each method returns the names of the values that it has read ----------

    def _peek(self, ahead: int = 0) -> str:
        """Return a character; empty behind the end."""
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _copy(self, count: int = 1) -> str:
        text = self._text[self._at : self._at + count]
        if VALUE in text:
            self._refuse("a backslash stands before a value; leave it out")
        self._at += count
        self._line.append(text)
        return text

    def _read_commands(self, kind: Literal["line", "group", "substitution"]) -> set[str]:
        """Read to the end of the line, or to the bracket that closes a group or a substitution."""
        command, names = _Command(), set[str]()
        while item := self._peek():
            if item == "\\":
                text = self._copy(2)[1:]
                if text != "\n":
                    command.current().write(text)
            elif item == "#" and command.word is None:
                self._read_comment()
            elif item in " \t" or (item == "&" and self._peek(1) == ">"):
                command.end_word()
                self._copy()
            elif item in "<>":
                names |= self._read_redirection(command, kind)
            elif item in "\n;|&()":
                self._end_command(command, kind)
                self._copy()
                if item == self._peek() == "(":
                    self._refuse("shells differ in what (( means: write $((…)) or ( (…) )")
                if item == "(":
                    names |= self._read_commands("group")
                elif item == ")" and kind != "line":  # there it ends the pattern of a case
                    return names
            else:
                names |= self._read_in_word(command, kind)
        if kind == "substitution":
            self._refuse(_OPEN)
        self._end_command(command, kind)
        return names

    def _end_command(self, command: _Command, kind: _Kind) -> None:
        command.end_word()
        command.is_target = False
        words, command.words = command.words, []
        self._written.update(word.text for word in command.targets)
        if words:
            if kind != "line" and words[0].text == "case":
                self._refuse("case inside (…) makes its quotes uncertain")
            self._commands.append(words)

    def _read_in_word(self, command: _Command, kind: _Kind) -> set[str]:
        """Read a value, a quoted text, an expansion or a character, of a word or in quotes."""
        item = self._peek()
        if item == VALUE:
            return self._read_value(command, "double" if kind == "double" else "bare")
        if item == "`":
            self._refuse("write $(…) for `…`, so that its quotes are certain")
        if item == "$":
            return self._read_dollar(command, kind)
        word = command.current()
        text = self._copy()
        if kind != "double" and text == '"':
            return self._read_double(command)
        if kind != "double" and text == "'":
            return self._read_single(command)
        word.write(text)
        return set()

    def _read_value(self, command: _Command, quoting: _Quoting) -> set[str]:
        one = self._field()
        if quoting != "single" and self._peek(-1) == "$":
            self._refuse(f"for the shell's own variable write ${{{{{one.name}}}}}")
        self._at += 1
        self._line.append((one, quoting))
        word = command.current()
        begins = not word.text.strip(VALUE)
        if begins and not command.is_target and all(w.text != "--" for w in command.words):
            self.exposed.add(one.name)
        names = {one.name} if self._is_chosen(one.name) else set[str]()
        word.write_value(names)
        return names

    def _field(self) -> Field:
        return self._fields[self._text.count(VALUE, 0, self._at)]

    def _read_single(self, command: _Command) -> set[str]:
        names = set[str]()
        while (item := self._peek()) != "'":
            if item == VALUE:
                names |= self._read_value(command, "single")
            elif not item:
                self._refuse(_OPEN)
            else:
                command.current().write(self._copy())
        self._copy()
        return names

    def _read_double(self, command: _Command) -> set[str]:
        names = set[str]()
        while (item := self._peek()) != '"':
            if not item:
                self._refuse(_OPEN)
            elif item == "\\":
                command.current().write(self._copy(2)[1:])
            else:
                names |= self._read_in_word(command, "double")
        self._copy()
        return names

    def _read_dollar(self, command: _Command, kind: _Kind) -> set[str]:
        after, word = self._peek(1), command.current()
        if after == "(" and self._peek(2) == "(":
            self._copy(3)
            return self._read_expansion(command, "arithmetic")
        if after == "(":
            return self._read_substitution(command, kind)
        if after == "{":
            word.note_variable(self._variable_at(2))
            self._copy(2)
            return self._read_expansion(command, "braces")
        if after == "[":
            self._refuse("write $((…)) for $[…]")
        if after and after in "'\"" and kind != "double":
            self._refuse(f"$ stands before a quote: shells differ in what ${after} means")
        word.note_variable(self._variable_at(1))
        word.write(self._copy())
        return set()

    def _variable_at(self, ahead: int) -> str:
        found = re.compile(r"[^\W\d]\w*|[1-9@*]|").match(self._text, self._at + ahead)
        return found[0] if found else ""

    def _read_substitution(self, command: _Command, kind: _Kind) -> set[str]:
        """Read ``$(…)`` or ``<(…)``."""
        word = command.current()
        self._copy(2)
        names = self._read_commands("substitution")
        word.write_value(names)
        if names and kind != "double":
            self._refuse('write "$(…)" in double quotes, or its words would become several')
        return names

    def _read_expansion(self, command: _Command, kind: Literal["braces", "arithmetic"]) -> set[str]:
        """Read the rest of ``${…}`` or ``$((…))``."""
        names = set[str]()
        depth = 1 if kind == "braces" else 2
        opens, closes = "" if kind == "braces" else "(", "}" if kind == "braces" else ")"
        begin = self._at
        while depth:
            item = self._peek()
            if not item:
                self._refuse(_OPEN)
            elif item == VALUE:
                name = self._field().name
                self._refuse(f"{{{name}}} stands inside ${{…}} or $((…)), which evaluate it")
            elif item == "\\":
                self._copy(2)
            elif item == "'" and kind == "braces":
                self._refuse("a single quote stands inside ${…}")
            elif item in "$`" or (item == '"' and kind == "braces"):
                names |= self._read_in_word(command, kind)
            else:
                depth += (item == opens) - (item == closes)
                self._copy()
        if kind == "arithmetic" or _EVALUATES.match(self._text, begin):
            # There bash reads what is in a variable as arithmetic, whose subscripts may be code.
            variables = {*_VARIABLE.findall(self._text[begin - 1 : self._at])}
            self._commands.append([Word("(("), Word(variables=variables)])
        return names

    def _read_comment(self) -> None:
        while (item := self._peek()) and item != "\n":
            if item == VALUE:
                self._refuse(f"{{{self._field().name}}} stands in a comment")
            self._copy()

    def _read_redirection(self, command: _Command, kind: _Kind) -> set[str]:
        if self._peek() == self._peek(1) == "<":
            self._refuse("<< takes text that is not quoted; pipe printf '%s' into the command")
        if command.word is not None and command.word.text.isdigit():
            command.word = None  # the number of a file
        command.end_word()
        if self._peek(1) == "(":  # <(…): the substitution is an argument
            return self._read_substitution(command, kind)
        self._copy()
        if (item := self._peek()) and item in ">&|":
            self._copy()
            if item == "&" and not _FILE_NUMBER.match(self._text, self._at):
                self._refuse("after >& write the number of a file: bash reads a word there as code")
        command.is_target = True
        return set()

    def _refuse(self, problem: str) -> NoReturn:
        raise ToolDefinitionError(
            f"{self._template!r}: {problem}. A value is an argument of a program; for anything "
            "else write a function that returns the program and its arguments"
        )


CommandLine = Sequence[str] | str
"""A program and its arguments, or a line for a shell."""


class CommandTemplate:
    """A command with names in braces; the names are its parameters, in order."""

    def __init__(self, template: CommandLine, shell: bool, types: Mapping[str, Any]) -> None:
        """Read a template.

        Args:
            template: A program and its arguments, or a line for a shell.
            shell: Whether it is a line for a shell.
            types: The types of its names; ``str`` for the others.

        Raises:
            ToolDefinitionError: It is not a template, or a value would be code.
        """
        if shell != isinstance(template, str):
            wants = "one string" if shell else "a list of program and arguments"
            raise ToolDefinitionError(f"with shell={shell} a command is {wants}, not {template!r}")
        self._parts = [
            parse_template(part) for part in ([template] if isinstance(template, str) else template)
        ]
        fields = [one for part in self._parts for one in part if isinstance(one, Field)]
        names = list(dict.fromkeys(one.name for one in fields))
        if unknown := sorted(types.keys() - set(names)):
            raise ToolDefinitionError(
                f"parameters= names {unknown[0]!r}, which the template {template!r} does not have"
            )
        self._types = {name: types.get(name, str) for name in names}
        self._line: ShellTemplate | None = None
        if isinstance(template, str):
            self._line = ShellTemplate(template, self._parts[0], self._is_chosen)
            exposed = self._line.exposed
        else:
            if found := problem_of([list(map(self._word, self._parts))]):
                raise ToolDefinitionError(
                    f"{template!r}: {found}; a value is an argument of a program, so write a "
                    "function that returns the program and its arguments"
                )
            exposed = self._exposed()
        self._exposed_names = {name for name in exposed if not _is_authors(self._types[name])}

    def as_function(self) -> Callable[..., Any]:
        """Return a function with the template's parameters."""

        def command(**values: Any) -> CommandLine:
            return self.fill(values)[0]

        command.__annotations__ = dict(self._types)
        command.__name__, command.__qualname__ = "", "template"
        command.__doc__ = None
        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]  # inspect reads it
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation)
                for name, annotation in self._types.items()
            ]
        )
        return command

    def check(self, values: Mapping[str, Any]) -> None:
        """Check the values of the names.

        Raises:
            BadArgumentsError: One would become an option of the program, or no program can get it.
        """
        for name in self._types:
            value = values.get(name)
            for one in value if isinstance(value, (list, tuple)) else (value,):
                if name in self._exposed_names and one is not None and str(one).startswith("-"):
                    raise BadArgumentsError(
                        f"bad arguments: {name}: it must not begin with '-', as {one!r:.80}"
                    )
                if "\0" in str(one):
                    raise BadArgumentsError(f"bad arguments: {name}: it has a null character")

    def fill(self, values: Mapping[str, Any]) -> tuple[CommandLine, dict[str, str]]:
        """Return the command, and the environment variables that a line for a shell needs."""
        if self._line is not None:
            return self._line.fill(values)
        return [argument for part in self._parts for argument in _filled(part, values)], {}

    def _is_chosen(self, name: str) -> bool:
        """Whether the model chooses the text of a value freely."""
        return not is_harmless(self._types[name])

    def _word(self, part: Sequence[str | Field]) -> Word:
        word = Word()
        for one in part:
            if isinstance(one, str):
                word.write(one)
            else:
                word.write_value([one.name] if self._is_chosen(one.name) else ())
        return word

    def _exposed(self) -> set[str]:
        """Return the names whose values begin an argument after the program."""
        exposed: set[str] = set()
        for part in self._parts[1:]:
            if part == ["--"]:
                break
            for one in part:
                if isinstance(one, str):
                    break
                exposed.add(one.name)
        return exposed


def is_harmless(annotation: Any) -> bool:
    """Whether no value of a type can be code: numbers, and values that the author chose."""
    return _is_safe(annotation, (Enum, int, float))


def _is_authors(annotation: Any) -> bool:
    """Whether the author of the template chose all values of a type."""
    return _is_safe(annotation, (Enum, bool))


def _is_safe(annotation: Any, classes: tuple[type, ...]) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if annotation is None or annotation is type(None) or get_origin(annotation) is Literal:
        return True
    if isinstance(annotation, type) and issubclass(annotation, classes):
        return True
    inner = [one for one in get_args(annotation) if one is not Ellipsis]
    return bool(inner) and all(_is_safe(one, classes) for one in inner)


def _filled(part: Sequence[str | Field], values: Mapping[str, Any]) -> list[str]:
    """Return the arguments that one part of a template becomes."""
    if len(part) == 1 and isinstance(part[0], Field):
        return texts_of(part[0], values[part[0].name])
    return [
        "".join(one if isinstance(one, str) else text_of(one, values[one.name]) for one in part)
    ]
