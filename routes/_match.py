"""Which messages a chain is meant for.

Matching is pure.  Everything that can be known from the class of an event is decided once per
class; what is left is one function per matcher, or none.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache
from inspect import get_annotations
from typing import Any, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError

from ._errors import RouteDefinitionError
from ._events import _registered, alias_of, classes_matching
from ._message import Message
from ._signatures import fit, name_of, needs_plain_function

Predicate = Callable[[Message], Any]
Spec = type | str | Predicate


@dataclass(frozen=True, slots=True)
class Matcher:
    """A checked declaration of the messages that are meant.

    Build one with ``matcher()``.
    """

    specs: tuple[Spec, ...]
    """Event classes, alias patterns and predicates; one of them has to match."""
    checks: tuple[Predicate, ...] = ()
    """Further conditions; all of them have to hold."""
    unless: tuple[type, ...] = ()
    """Event classes that are never meant."""
    types: tuple[type, ...] | None = field(init=False)
    """The event classes, where nothing else is named; else ``None``."""

    def __post_init__(self) -> None:
        types = tuple(spec for spec in self.specs if isinstance(spec, type))
        object.__setattr__(self, "types", types if len(types) == len(self.specs) else None)

    def for_class(self, cls: type) -> tuple[Predicate, ...] | None:
        """Return what is left to ask of a message whose event is of this class.

        Args:
            cls: The class of an event.

        Returns:
            ``None`` if no such message is meant, else the conditions that all have to hold.
        """
        if issubclass(cls, self.unless):
            return None
        asked: list[Predicate] = []
        for spec in self.specs:
            if isinstance(spec, type):
                if issubclass(cls, spec):
                    return self.checks
            elif not isinstance(spec, str):
                asked.append(spec)
            elif any(parent in classes_matching(spec) for parent in cls.__mro__):
                return self.checks
        if not asked:
            return None
        if len(asked) == 1:
            return (asked[0], *self.checks)
        either = tuple(asked)
        return (lambda message: any(ask(message) for ask in either), *self.checks)

    def __str__(self) -> str:
        names = [_spec_name(spec) for spec in self.specs]
        return names[0] if len(names) == 1 else f"[{', '.join(names)}]"


def matcher(
    spec: object,
    where_from: str,
    *,
    where: Predicate | None = None,
    source: str | Iterable[str] | None = None,
    filters: Mapping[str, Any] | None = None,
) -> Matcher:
    """Check a declaration and make a ``Matcher`` of it.

    Args:
        spec: An event class, an alias or alias pattern (``"user.*"``), a predicate over messages,
            or a list or tuple of these.
        where_from: The step of the chain, for messages, such as ``"bridge.on()"``.
        where: A further plain function over the message.
        source: The names of publishers that are meant; ``None`` means all.
        filters: Field name to the value it must equal, or to a function of the field's value.

    Raises:
        RouteDefinitionError: A wrong type, a duplicate, an unknown alias or field.
    """
    if isinstance(spec, type) and where is None and source is None and not filters:
        return _of_class(spec, where_from)
    specs = tuple(_checked(item, where_from) for item in _listed(spec, where_from))
    _refuse_duplicates(specs, where_from)
    checks: list[Predicate] = []
    if source is not None:
        checks.append(_source_check(source, where_from))
    for name, expected in (filters or {}).items():
        checks.append(_field_check(specs, name, expected, where_from))
    if where is not None:
        needs_plain_function(where, f"{where_from} where=")
        checks.append(fit(where, 1, f"{where_from} where=", "the message, or nothing"))
    return Matcher(specs, tuple(checks))


@lru_cache(maxsize=256)
def _of_class(cls: type, where_from: str) -> Matcher:
    """Return the matcher of a class: the same one for the many routes of many calls."""
    return Matcher((_checked(cls, where_from),))


def written_options(
    filters: Mapping[str, Any], source: str | Iterable[str] | None, where: Predicate | None = None
) -> list[str]:
    """Return the options of a declaration as they were written, for ``repr()``."""
    options = [f"{k}={name_of(v) if callable(v) else repr(v)}" for k, v in filters.items()]
    if source is not None:
        options.append(f"source={source!r}")
    if where is not None:
        options.append(f"where={name_of(where)}")
    return options


def _listed(spec: object, where_from: str) -> list[object]:
    if isinstance(spec, (list, tuple, set, frozenset)):
        if not spec:
            raise RouteDefinitionError(f"{where_from} got an empty list; name at least one event")
        return list(spec)
    return [spec]


def _checked(spec: object, where_from: str) -> Spec:
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
        known = sorted(alias_of(cls) for cls in _registered)
        close = difflib.get_close_matches(pattern, known, n=3)
        hint = f"did you mean {' or '.join(map(repr, close))}?" if close else f"known: {known}"
        raise RouteDefinitionError(f"{where_from}: no event has the alias {pattern!r}; {hint}")
    return pattern


def _refuse_duplicates(specs: tuple[Spec, ...], where_from: str) -> None:
    seen: list[Spec] = []
    for spec in specs:
        if spec in seen:
            raise RouteDefinitionError(f"{where_from} names {_spec_name(spec)} twice; name it once")
        seen.append(spec)


def _spec_name(spec: Spec) -> str:
    if isinstance(spec, type):
        return spec.__name__
    return repr(spec) if isinstance(spec, str) else name_of(spec)


def _source_check(source: object, where_from: str) -> Predicate:
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


def _field_check(
    specs: tuple[Spec, ...], name: str, expected: object, where_from: str
) -> Predicate:
    for cls in _classes(specs, name, where_from):
        known = _field_types(cls)
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
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
                f"{where_from}: the filter {name}= needs an event class beside it; with a function "
                "test the field inside the function"
            )
    return classes


def _field_types(cls: type) -> dict[str, Any]:
    if issubclass(cls, BaseModel):
        return {name: field.annotation for name, field in cls.model_fields.items()}
    try:
        hints = get_type_hints(cls)
    except (
        NameError
    ):  # a name that only type checkers import: the fields are known, not their types
        hints = {name: Any for base in reversed(cls.__mro__) for name in get_annotations(base)}
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
    except Exception:  # noqa: BLE001 - a type pydantic knows no schema for cannot be checked here
        return
