"""Templates of commands: their parameters, their values, and what a value may not be.

The values of a line for ``/bin/sh`` reach it in environment variables and never as text.  The line
is read as a shell reads it, to learn whether a value stands bare, in double quotes or in single
ones; each place becomes a reference to a variable that works there.  Where that is uncertain or a
value would be code, the tool is refused when it is defined.
"""

from __future__ import annotations

import inspect
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, Literal, get_args, get_origin

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

_Kind = Literal["commands", "group", "substitution", "double", "braces", "arithmetic"]
_COMMANDS = ("commands", "group", "substitution")


@dataclass(slots=True, eq=False)
class _OpenBracket:
    """Something that is open at a place of the line."""

    kind: _Kind
    words: list[Word] = field(default_factory=list)
    word: Word | None = None
    is_target: bool = False
    """Whether the word is where a redirection goes."""
    names: set[str] = field(default_factory=set)
    depth: int = 0

    def current_word(self) -> Word:
        """Return the word that is being read; begin one if there is none."""
        if self.word is None:
            self.word = Word()
        return self.word

    def expect_target(self) -> None:
        """Expect the word that a redirection goes to."""
        self.is_target = True

    def drop_word(self) -> None:
        """Forget the word: it is the number of a file."""
        self.word = None

    def end_word(self) -> None:
        """Add the word to the command, unless a redirection goes to it."""
        if self.word is not None:
            if not self.is_target:
                self.words.append(self.word)
            self.word, self.is_target = None, False

    def end_command(self) -> list[Word]:
        """Return the words of the command, and begin another."""
        self.end_word()
        self.is_target = False
        words, self.words = self.words, []
        return words

    def nest(self, by: int) -> int:
        """Count a bracket inside; return how many are open."""
        self.depth += by
        return self.depth


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
        self._items: list[str | Field] = []
        for part in parts:
            self._items.extend(part if isinstance(part, str) else [part])
        self._line: list[str | tuple[Field, Literal["bare", "double", "single"]]] = []
        self._stack = [_OpenBracket("commands")]
        self._commands: list[list[Word]] = []
        self._at = 0
        if any(isinstance(part, Field) for part in parts):
            self._read()
            if found := problem_of(self._commands):
                self._refuse(found)
        else:
            self._line.append("".join(map(str, parts)))

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

    # --- reading the line -----------------------------------------------------------------------

    def _read(self) -> None:
        while self._at < len(self._items):
            item = self._items[self._at]
            if isinstance(item, Field):
                self._read_value(item)
            elif self._frame.kind == "double":
                self._read_quoted(item)
            elif self._frame.kind in _COMMANDS:
                self._read_command(item)
            else:
                self._read_expansion(item)
        while len(self._stack) > 1:
            if self._frame.kind != "group":
                self._refuse("a quote or a bracket in it is never closed")
            self._pop()
        self._end_command()

    @property
    def _frame(self) -> _OpenBracket:
        return self._stack[-1]

    @property
    def _owner(self) -> _OpenBracket:
        """The frame whose word is being read."""
        return next(frame for frame in reversed(self._stack) if frame.kind in _COMMANDS)

    def _peek(self, ahead: int = 1) -> str:
        """Return a later character; empty at the end and for a value."""
        at = self._at + ahead
        item = self._items[at] if at < len(self._items) else ""
        return item if isinstance(item, str) else ""

    def _copy(self, count: int = 1) -> str:
        taken = self._items[self._at : self._at + count]
        if not all(isinstance(item, str) for item in taken):
            self._refuse("a backslash stands before a value; leave it out")
        self._at += count
        text = "".join(map(str, taken))
        self._line.append(text)
        return text

    def _word(self) -> Word:
        return self._owner.current_word()

    def _read_value(self, one: Field, quoting: Literal["single"] | None = None) -> None:
        frame = self._frame
        if frame.kind in ("braces", "arithmetic"):
            self._refuse(f"{{{one.name}}} stands inside ${{…}} or $((…)), which evaluate it")
        if quoting is None and self._at and self._items[self._at - 1] == "$":
            self._refuse(f"for the shell's own variable write ${{{{{one.name}}}}}")
        self._at += 1
        self._line.append((one, quoting or ("double" if frame.kind == "double" else "bare")))
        word, owner = self._word(), self._owner
        names = {one.name} if self._is_chosen(one.name) else set()
        for open_frame in self._stack:
            open_frame.names.update(names)
        begins = not word.text.strip(VALUE)
        if begins and not owner.is_target and all(w.text != "--" for w in owner.words):
            self.exposed.add(one.name)
        word.write_value(names)

    def _read_quoted(self, item: str) -> None:
        if item == '"':
            self._copy()
            self._stack.pop()
        elif item == "\\":
            self._word().write(self._copy(2)[1:])
        elif not self._read_dollar(item):
            self._word().write(self._copy())

    def _read_expansion(self, item: str) -> None:
        """Read a character of ``${…}`` or ``$((…))``."""
        frame = self._frame
        if item == "\\":
            self._copy(2)
        elif item == '"' and frame.kind == "braces":
            self._open("double", 1)
        elif item == "'" and frame.kind == "braces":
            self._refuse("a single quote stands inside ${…}")
        elif self._read_dollar(item):
            pass
        elif frame.kind == "braces":
            self._copy()
            if item == "}":
                self._stack.pop()
        else:
            self._copy()
            if not frame.nest((item == "(") - (item == ")")):
                self._stack.pop()

    def _read_dollar(self, item: str) -> bool:
        """Read an expansion; return False if there is none here."""
        if item == "`":
            self._refuse("write $(…) for `…`, so that its quotes are certain")
        if item != "$":
            return False
        after = self._peek()
        word = self._word()
        if after == "(" and self._peek(2) == "(":
            self._open("arithmetic", 3)
            self._frame.nest(2)
        elif after == "(":
            self._open("substitution", 2)
        elif after == "{":
            word.note_variable(self._variable_at(2))
            self._open("braces", 2)
        elif after in ("'", '"') and self._frame.kind != "double":
            self._refuse(f"$ stands before a quote: shells differ in what ${after} means")
        else:
            word.note_variable(self._variable_at(1))
            word.write(self._copy())
        return True

    def _variable_at(self, ahead: int) -> str:
        name = self._peek(ahead)
        if not (name.isalpha() or name == "_"):
            return name if name and name in "123456789@*" else ""
        while (letter := self._peek(ahead + len(name))) and (letter.isalnum() or letter == "_"):
            name += letter
        return name

    def _open(self, kind: _Kind, count: int) -> None:
        self._word()
        self._copy(count)
        self._stack.append(_OpenBracket(kind))

    def _read_command(self, item: str) -> None:
        frame = self._frame
        if item == "'":
            self._read_single()
        elif item == '"':
            self._open("double", 1)
        elif item == "\\":
            text = self._copy(2)[1:]
            if text != "\n":
                self._word().write(text)
        elif item == "#" and frame.word is None:
            self._read_comment()
        elif self._read_dollar(item):
            pass
        elif item in " \t":
            self._frame.end_word()
            self._copy()
        elif item in "<>":
            self._read_redirection()
        elif item == "&" and self._peek() == ">":
            self._frame.end_word()
            self._copy()
        elif item in "\n;|&":
            self._end_command()
            self._copy()
        elif item == "(":
            self._end_command()
            self._copy()
            self._stack.append(_OpenBracket("group"))
        elif item == ")":
            self._copy()
            self._pop()
        else:
            self._word().write(self._copy())

    def _read_single(self) -> None:
        self._word()
        self._copy()
        while (item := self._items[self._at] if self._at < len(self._items) else "") != "'":
            if isinstance(item, Field):
                self._read_value(item, "single")
            elif not item:
                self._refuse("a quote or a bracket in it is never closed")
            else:
                self._word().write(self._copy())
        self._copy()

    def _read_comment(self) -> None:
        while self._at < len(self._items) and (item := self._items[self._at]) != "\n":
            if isinstance(item, Field):
                self._refuse(f"{{{item.name}}} stands in a comment")
            self._copy()

    def _read_redirection(self) -> None:
        if self._peek() == "<" and self._items[self._at] == "<":
            self._refuse("<< takes text that is not quoted; pipe printf '%s' into the command")
        word = self._frame.word
        if word is not None and word.text.isdigit():
            self._frame.drop_word()
        self._frame.end_word()
        if self._peek() == "(":  # <(…): the substitution is an argument
            self._open("substitution", 2)
            return
        self._copy()
        if self._peek(0) and self._peek(0) in ">&|":
            self._copy()
        self._frame.expect_target()

    def _end_command(self) -> None:
        words = self._frame.end_command()
        if words:
            if len(self._stack) > 1 and words[0].text == "case":
                self._refuse("case inside (…) makes its quotes uncertain")
            self._commands.append(words)

    def _pop(self) -> None:
        """Close a group or a substitution; a bracket that opens nothing ends a case's pattern."""
        self._end_command()
        if len(self._stack) == 1:
            return
        closed = self._stack.pop()
        if closed.kind != "substitution":
            return
        self._word().write_value(closed.names)
        if closed.names and self._frame.kind != "double":
            self._refuse('write "$(…)" in double quotes, or its words would become several')

    def _refuse(self, problem: str) -> None:
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
