"""The values in a command's template, and their texts."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Any

from .._errors import ToolDefinitionError

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
