"""Unwraps what a model encoded twice: JSON in a text where the schema wants no text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bargein.bridge.validation.foreign_data import read_json

MOST_DEPTH = 16
"""How deep arguments and references are followed."""

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
    if depth > MOST_DEPTH or not isinstance(value, str | dict | list):
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
    if not isinstance(schema, Mapping) or depth > MOST_DEPTH:
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
    found: object = root
    for part in reference.removeprefix("#/").split("/"):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found if reference.startswith("#/") else None


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
