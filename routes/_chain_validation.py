"""Finds typos and wrong values in the events and filters of a chain when it is built.

``_stages.py`` checks the functions given to stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from ._errors import RouteDefinitionError
from ._events import alias_of, classes_matching, registered_classes
from ._message import Message
from ._signatures import fit, needs_plain_function
from .type_annotations import own_annotations

Predicate = Callable[[Message], Any]
Spec = type | str | Predicate

_OPTIONS = ("condition", "handler", "limit", "linked", "overlap", "source", "where")
"""What else may stand in the place of a field's name; a misspelt one is taken for a field."""


def listed(spec: object, where_from: str) -> list[object]:
    """Return the items that a declaration names, as a list.

    Raises:
        RouteDefinitionError: It names nothing.
    """
    if isinstance(spec, (list, tuple, set, frozenset)):
        if not spec:
            raise RouteDefinitionError(f"{where_from} got an empty list; name at least one event")
        return list(spec)
    return [spec]


def checked(spec: object, where_from: str) -> Spec:
    """Check one item of a declaration: an event class, an alias of one, or a function.

    Raises:
        RouteDefinitionError: It is none of them; for a misspelt alias, with similar ones.
    """
    if isinstance(spec, type):
        if spec in (object, str, int, float, bool, bytes, dict, list, tuple):
            raise RouteDefinitionError(f"{where_from} needs an event class, not {spec.__name__}")
        return spec
    if isinstance(spec, str):
        return _checked_alias(spec, where_from)
    if isinstance(spec, BaseModel) or is_dataclass(spec):
        raise RouteDefinitionError(
            f"{where_from} got an event, {spec!r}; pass its class, {type(spec).__name__}"
        )
    if callable(spec):
        needs_plain_function(spec, where_from)
        return fit(spec, 1, where_from, "the message")
    raise RouteDefinitionError(
        f"{where_from} needs an event class, an alias such as 'user.*', or a function of the "
        f"message, not {spec!r}"
    )


def _checked_alias(pattern: str, where_from: str) -> str:
    if next(classes_matching(pattern), None) is None:
        known = sorted(alias_of(cls) for cls in registered_classes)
        if "*" in pattern:
            known = sorted({f"{alias.partition('.')[0]}.*" for alias in known})
        close = _similar(pattern, known, most=3)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"known: {known}."
        raise RouteDefinitionError(
            f"{where_from}: no event has the alias {pattern!r}; {hint} Aliases are those of Event "
            "and its subclasses; pass any other class itself, or decorate it with @register"
        )
    return pattern


def _similar(name: str, known: list[str], most: int) -> list[str]:
    from difflib import get_close_matches  # only chains with mistakes need it

    return get_close_matches(name, known, n=most)


def source_check(source: object, where_from: str) -> Predicate:
    """Return the condition that a message comes from one of the given publishers.

    Raises:
        RouteDefinitionError: A publisher is not a name.
    """
    many = isinstance(source, Iterable) and not isinstance(source, str)
    names = tuple(source) if many else (source,)  # type: ignore[arg-type]  # many
    wrong = [name for name in names if not isinstance(name, str) or not name]
    if wrong or not names:
        raise RouteDefinitionError(
            f"{where_from} source= needs names of publishers, such as 'caller', not {source!r}"
        )
    if len(names) == 1:
        only = names[0]
        return lambda message: message.source == only
    return lambda message: message.source in names


def field_check(specs: tuple[Spec, ...], name: str, expected: object, where_from: str) -> Predicate:
    """Return the condition that a field of the event equals a value, or satisfies a function.

    Raises:
        RouteDefinitionError: An event has no such field (the message names a similar one), or the
            field can never have this value.
    """
    for cls in _classes(specs, name, where_from):
        known = _field_types(cls)
        if name not in known:
            options = [option for option in _OPTIONS if option != name]
            close = _similar(name, [*known, *options], most=1)
            hint = f"did you mean {close[0]!r}?" if close else f"it has {sorted(known)}"
            raise RouteDefinitionError(
                f"{where_from}: {cls.__name__} has no field {name!r}; {hint}"
            )
        if not callable(expected):
            _check_value(cls, name, known[name], expected, where_from)
    if callable(expected) and not isinstance(expected, type):
        needs_plain_function(expected, f"{where_from} {name}=")
        test = fit(expected, 1, f"{where_from} {name}=", "the field's value")
        return lambda message: test(getattr(message.event, name))
    return lambda message: getattr(message.event, name) == expected


def _classes(specs: tuple[Spec, ...], name: str, where_from: str) -> list[type]:
    classes: list[type] = []
    for spec in specs:
        if isinstance(spec, type):
            classes.append(spec)
        elif isinstance(spec, str):
            classes.extend(classes_matching(spec))
        else:
            raise RouteDefinitionError(
                f"{where_from}: the filter {name}= needs an event class; if you give a function "
                "instead, test the field inside the function"
            )
    return classes


def _field_types(cls: type) -> dict[str, Any]:
    if issubclass(cls, BaseModel):
        return {name: field.annotation for name, field in cls.model_fields.items()}
    try:
        hints = get_type_hints(cls)
    except NameError:
        # A name is imported only for type checkers: the fields are known, but not their types.
        hints = {name: Any for base in reversed(cls.__mro__) for name in own_annotations(base)}
    if is_dataclass(cls):
        return {field.name: hints[field.name] for field in fields(cls)}
    return hints


def _check_value(cls: type, name: str, annotation: Any, value: object, where_from: str) -> None:
    try:
        TypeAdapter(annotation).validate_python(value, strict=True)
    except ValidationError as error:
        reason = error.errors()[0]["msg"]
        raise RouteDefinitionError(
            f"{where_from}: {name}={value!r} can never equal {cls.__name__}.{name}: {reason}"
        ) from None
    except Exception:  # noqa: BLE001 - pydantic has no schema for this type, so the value cannot be checked
        return
