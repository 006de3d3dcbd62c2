"""Templates of commands: their parameters, their values, and what a value may not be."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, get_args, get_origin

from .._errors import BadArgumentsError, ToolDefinitionError
from ._shell_template import ShellTemplate
from ._template_values import Field, parse_template, text_of, texts_of
from ._words_of_commands import Word, problem_of

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
