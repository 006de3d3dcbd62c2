"""Decides which messages a chain reacts to.

Matching is pure.  Whatever depends only on the class of an event is decided once per class; the
remaining conditions are checked for each message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ._chain_validation import Predicate as Predicate
from ._chain_validation import Spec, checked, field_check, listed, source_check
from ._errors import RouteDefinitionError
from ._events import classes_matching
from ._message import Message
from ._signatures import fit, name_of, needs_plain_function


def all_met(checks: tuple[Predicate, ...], message: Message) -> bool:
    """Whether a message meets all conditions."""
    return all(check(message) for check in checks)


@dataclass(frozen=True, slots=True, eq=False)
class Matcher:
    """A checked declaration of the messages to match.

    Build one with ``matcher()``.
    """

    specs: tuple[Spec, ...]
    """Event classes, alias patterns and predicates; one of them must match."""
    checks: tuple[Predicate, ...] = ()
    """Further conditions; all of them must be met."""
    unless: tuple[type, ...] = ()
    """Event classes that never match."""
    types: tuple[type, ...] | None = field(init=False)
    """The event classes if only classes are named; else ``None``."""

    def __post_init__(self) -> None:
        types = tuple(spec for spec in self.specs if isinstance(spec, type))
        object.__setattr__(self, "types", types if len(types) == len(self.specs) else None)

    def for_class(self, cls: type) -> tuple[Predicate, ...] | None:
        """Return the conditions left to check for a message with an event of this class.

        Returns:
            ``None`` if no such message matches, else the conditions, all of which must be met.
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
    """Check a declaration and return its ``Matcher``.

    Args:
        spec: An event class, an alias or alias pattern (``"user.*"``), a predicate over messages,
            or a list or tuple of these.
        where_from: The step of the chain, for error messages, such as ``"bridge.on()"``.
        where: A further plain function over the message.
        source: The names of the publishers whose events match; ``None`` means all.
        filters: Field name to the value it must equal, or to a function of the field's value.

    Raises:
        RouteDefinitionError: A wrong type, a duplicate, an unknown alias or field.
    """
    named = listed(spec, where_from)
    if where is None and source is None and not filters:
        classes = tuple(item for item in named if isinstance(item, type))
        if len(classes) == len(named):
            return _of_classes(classes, where_from)
    specs = _checked_all(named, where_from)
    checks: list[Predicate] = []
    if source is not None:
        checks.append(source_check(source, where_from))
    for name, expected in (filters or {}).items():
        checks.append(field_check(specs, name, expected, where_from))
    if where is not None:
        needs_plain_function(where, f"{where_from} where=")
        checks.append(fit(where, 1, f"{where_from} where=", "the message, or nothing"))
    return Matcher(specs, tuple(checks))


@lru_cache(maxsize=256)
def _of_classes(classes: tuple[type, ...], where_from: str) -> Matcher:
    """Return the matcher of event classes; all routes of all calls share it."""
    return Matcher(_checked_all(classes, where_from))


def _checked_all(named: Iterable[object], where_from: str) -> tuple[Spec, ...]:
    specs = tuple(checked(item, where_from) for item in named)
    _refuse_duplicates(specs, where_from)
    return specs


def written_options(
    filters: Mapping[str, Any], source: str | Iterable[str] | None, where: Predicate | None = None
) -> list[str]:
    """Return the options of a declaration as written, for ``repr()``."""
    options = [f"{k}={name_of(v) if callable(v) else repr(v)}" for k, v in filters.items()]
    if source is not None:
        options.append(f"source={source!r}")
    if where is not None:
        options.append(f"where={name_of(where)}")
    return options


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
