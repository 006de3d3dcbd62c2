"""Reads arguments by a JSON schema: unwraps what was encoded twice, and checks a foreign schema.

Both are bounded in depth, the check in work too.

Rules:
1. Only what is cheap and certain is checked: types, required and unknown names, fixed values, and
   bounds.  Whoever wrote the schema checks the rest itself, so what is not checked passes.
2. No foreign pattern is matched, since one can take longer than the universe lasts, with the
   interpreter's lock held.
3. A check stops after `MOST_STEPS`; what was not reached passes.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bargein.bridge.validation.foreign_data import read_json

MOST_STEPS = 20_000
"""How many pairs of a value and a schema are looked at: some 20 ms."""

MOST_DEPTH = 32
"""How deep schemas and values are followed; a reference counts as a step down."""

MOST_COMPLAINTS = 5
"""How many places are named."""

MOST_CHARACTERS = 200
"""The longest text of all complaints, which a model reads."""

_SHOWN = 60
"""How much of one value or name is shown."""

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int, float),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (Mapping,),
    "null": (type(None),),
}


_BOUNDS: tuple[tuple[str, Callable[[float, float], bool], str], ...] = (
    ("minimum", operator.lt, "less than the minimum of"),
    ("maximum", operator.gt, "greater than the maximum of"),
    ("exclusiveMinimum", operator.le, "not greater than"),
    ("exclusiveMaximum", operator.ge, "not less than"),
)


class SchemaCheck:
    """A foreign schema of a tool's arguments."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Keep a schema; it is not checked itself, and what is wrong in it checks nothing."""
        self._schema = schema

    def complaints(self, arguments: Mapping[str, Any]) -> str:
        """Return what is wrong with some arguments; empty for nothing that is checked."""
        found: list[str] = []
        for complaint in _OneCheck(self._schema).check(arguments, self._schema, "", 0):
            found.append(complaint)
            if len(found) > MOST_COMPLAINTS:
                break
        return _joined(found)


def _joined(found: list[str]) -> str:
    text = ""
    for number, complaint in enumerate(found):
        longer = f"{text}; {complaint}" if text else complaint
        if number == MOST_COMPLAINTS or len(longer) > MOST_CHARACTERS - len("; and more"):
            return f"{text}; and more" if text else shortened(complaint, MOST_CHARACTERS)
        text = longer
    return text


class _OneCheck:
    """One check."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MOST_STEPS

    def check(self, value: Any, schema: Any, place: str, depth: int) -> Iterator[str]:
        """Yield what is wrong with a value."""
        self._left -= 1
        if self._left < 0 or depth > MOST_DEPTH or not isinstance(schema, Mapping):
            return
        complaint = self._of_value(value, schema)
        if complaint:
            yield f"{place}: {complaint}" if place else complaint
            return
        if isinstance(value, Mapping):
            yield from self._of_object(value, schema, place, depth)
        elif isinstance(value, list | tuple):
            items = schema.get("items")
            for number, item in enumerate(value if isinstance(items, Mapping) else ()):
                if self._left < 0:
                    return
                yield from self.check(item, items, f"{place}[{number}]", depth + 1)
        yield from self._of_others(value, schema, place, depth)

    def _of_value(self, value: Any, schema: Mapping[str, Any]) -> str:
        kinds = schema.get("type")
        kinds = [kinds] if isinstance(kinds, str) else kinds
        if isinstance(kinds, list) and kinds and not any(_is(value, kind) for kind in kinds):
            return f"{_shown(value)} is not of type {_shown('/'.join(map(str, kinds)))}"
        if not isinstance(value, str | int | float | bool | None):
            return _of_size(len(value), schema, "Items") if isinstance(value, list) else ""
        if isinstance(allowed := schema.get("enum"), list):
            self._left -= len(allowed)
            plain = all(not isinstance(one, list | dict) for one in allowed)
            if plain and not any(_same(value, one) for one in allowed):
                return f"{_shown(value)} is not one of {_shown(allowed)}"
        if "const" in schema and not _same(value, schema["const"]):
            return f"{_shown(value)} is not {_shown(schema['const'])}"
        if isinstance(value, str):
            return _of_size(len(value), schema, "Length")
        return "" if value is None or isinstance(value, bool) else _of_number(value, schema)

    def _of_object(
        self, value: Mapping[Any, Any], schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        properties = schema.get("properties")
        known: Mapping[Any, Any] = properties if isinstance(properties, Mapping) else {}
        required = schema.get("required")
        for name in required if isinstance(required, list) else ():
            self._left -= 1
            if isinstance(name, str) and name not in value:
                yield f"{f'{place}: ' if place else ''}{_shown(name)} is a required property"
        closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
        others = schema.get("additionalProperties")
        for name, one in value.items():
            if self._left < 0:
                return
            if name not in known and closed:
                self._left -= 1
                yield f"{_at(place, name)}: there is no such argument"
            else:
                yield from self.check(one, known.get(name, others), _at(place, name), depth + 1)

    def _of_others(
        self, value: Any, schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        """Yield what is wrong by a reference, or by a choice of schemas."""
        reference = schema.get("$ref")
        if isinstance(reference, str) and len(reference) < MOST_CHARACTERS:
            yield from self.check(value, _referred(reference, self._root), place, depth + 1)
        parts = schema.get("allOf")
        for part in parts if isinstance(parts, list) else ():
            yield from self.check(value, part, place, depth + 1)
        for word in ("anyOf", "oneOf"):
            choices = schema.get(word)
            if isinstance(choices, list) and choices:
                first = [next(self.check(value, one, place, depth + 1), "") for one in choices]
                if all(first):
                    one = first[0] if len(first) == 1 else f"{_shown(value)} fits none of {word}"
                    yield one if len(first) == 1 or not place else f"{place}: {one}"


def _is(value: Any, kind: object) -> bool:
    if not isinstance(kind, str) or kind not in _TYPES:
        return True
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind])


def _same(one: Any, other: Any) -> bool:
    """Whether two values without parts are the same JSON: 1 is 1.0, and not true."""
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def _of_size(size: int, schema: Mapping[str, Any], what: str) -> str:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    unit = "items" if what == "Items" else "characters"
    if isinstance(least, int) and size < least:
        return f"it has {size} {unit}, fewer than {_shown(least)}"
    if isinstance(most, int) and size > most:
        return f"it has {size} {unit}, more than {_shown(most)}"
    return ""


def _of_number(value: float, schema: Mapping[str, Any]) -> str:
    for word, is_out, said in _BOUNDS:
        limit = schema.get(word)
        if isinstance(limit, int | float) and not isinstance(limit, bool) and is_out(value, limit):
            return f"{_shown(value)} is {said} {_shown(limit)}"
    return ""


def _at(place: str, name: object) -> str:
    return shortened(f"{place}.{name}" if place else str(name), _SHOWN)


def _shown(value: object) -> str:
    """Return a value as short text, whatever its size."""
    if isinstance(value, str):
        return repr(value[:_SHOWN]) if len(value) <= _SHOWN else f"{value[:_SHOWN]!r}…"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        plain = len(value) <= 10 and all(isinstance(one, str | int | float) for one in value)
        return shortened(", ".join(map(_shown, value)), _SHOWN) if plain and value else "a list"
    if isinstance(value, int) and abs(value) >= 10**_SHOWN:
        return "a number of many digits"
    return repr(value)


def shortened(text: str, most: int) -> str:
    """Return a text of at most so many characters, with a mark where it was cut."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


MOST_WRAPPED = 16
"""How deep arguments and references are followed to unwrap texts."""

_MANY = (dict, list)
_BEGINS = frozenset('{["-0123456789tfn')
"""What JSON begins with; an empty text is none."""

_KINDS: dict[type, str] = {bool: "boolean", int: "integer", float: "number", dict: "object",
                           list: "array", type(None): "null"}  # fmt: skip


def unwrapped(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments with each text read as JSON where the schema wants that, and no text.

    Args:
        arguments: The arguments of a call.
        schema: The JSON schema of the tool's arguments; what is wrong in it changes nothing.
    """
    if not any(map(_may_be_json, arguments.values())):
        return dict(arguments)
    return dict(_unwrapped(dict(arguments), schema, schema, 0))


def _may_be_json(value: Any) -> bool:
    return value.lstrip()[:1] in _BEGINS if isinstance(value, str) else isinstance(value, _MANY)


def _unwrapped(value: Any, schema: object, root: Mapping[str, Any], depth: int) -> Any:
    if depth > MOST_WRAPPED or not isinstance(value, str | dict | list):
        return value
    variants = [*_variants(schema, root, 0)]
    if isinstance(value, str):
        kinds = [kind for variant in variants for kind in _kinds_of(variant)]
        if not kinds or "string" in kinds:
            return value
        try:
            read = read_json(value)
        except ValueError:
            return value
        if not _is_one_of(read, kinds):
            return value
        value = read
    if isinstance(value, dict):
        return {
            name: _unwrapped(one, _of_property(name, variants), root, depth + 1)
            for name, one in value.items()
        }
    if isinstance(value, list):
        items = next((v["items"] for v in variants if "items" in v), None)
        return [_unwrapped(one, items, root, depth + 1) for one in value]
    return value


def _variants(schema: object, root: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas of which a value must match one, references followed."""
    if not isinstance(schema, Mapping) or depth > MOST_WRAPPED:
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        yield from _variants(_referred(reference, root), root, depth + 1)
        return
    inner = [one for name in ("anyOf", "oneOf") for one in _list(schema.get(name))]
    whole = _list(schema.get("allOf"))
    if len(whole) == 1:  # as pydantic and others write a reference with a description
        inner += whole
    if not inner:
        yield schema
    for one in inner:
        yield from _variants(one, root, depth + 1)


def _referred(reference: str, root: Mapping[str, Any]) -> object:
    """Return the part of a schema that a reference names; ``None`` for none."""
    if not reference.startswith("#"):
        return None  # other documents are not followed
    found: object = root
    for name in reference[1:].split("/")[1:]:
        key = name.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def _kinds_of(schema: Mapping[str, Any]) -> list[str]:
    """Return the types that a schema allows; "string" too if it does not say."""
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return [kinds]
    named = [kind for kind in _list(kinds) if isinstance(kind, str)]
    return named or ["string"]


def _is_one_of(value: object, kinds: list[str]) -> bool:
    kind = _KINDS.get(type(value), "string")
    return kind in kinds or (kind == "integer" and "number" in kinds)


def _of_property(name: str, variants: list[Mapping[str, Any]]) -> object:
    for variant in variants:
        properties = variant.get("properties")
        if isinstance(properties, Mapping) and name in properties:
            return properties[name]
    return next((v.get("additionalProperties") for v in variants), None)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
