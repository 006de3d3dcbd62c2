"""What is to be done with a message: decided once per event class, then plain calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass
from functools import wraps
from typing import Any

from pydantic import BaseModel

from ._match import Matcher, Predicate
from ._message import Message

Observer = Callable[[Message], Any]


@dataclass(slots=True)
class Plan:
    """What is to be done with messages of one event class; made once per class."""

    rules: tuple[Observer, ...]
    first: tuple[Observer, ...]
    triggers: tuple[Callable[[Message], None], ...]
    sinks: tuple[Observer, ...]


NOTHING = Plan((), (), (), ())
"""The plan of a router that is closed."""

publishable: set[type] = set()
"""The classes of which ``is_event()`` has said yes."""


def is_event(value: object) -> bool:
    """Whether a value can be published: a pydantic model, or a dataclass."""
    cls = type(value)
    if isinstance(value, BaseModel) or is_dataclass(cls):
        publishable.add(cls)
        return True
    return False


def holds(checks: tuple[Predicate, ...], message: Message) -> bool:
    """Whether all conditions hold for a message."""
    for check in checks:  # noqa: SIM110 - a generator expression costs more than the checks
        if not check(message):
            return False
    return True


def matching(entries: list[tuple[Matcher, Observer]], cls: type) -> list[Observer]:
    """Return the observers or sinks that are meant to see events of a class."""
    found: list[Observer] = []
    for meant, fn in entries:
        # In place: most are not meant, and there is a plan for each class of each call.
        if meant.types is None or meant.unless:
            checks = meant.for_class(cls)
        else:
            checks = meant.checks if issubclass(cls, meant.types) else None
        if checks is not None:
            found.append(_asked(fn, checks) if checks else fn)
    return found


def _asked(fn: Observer, checks: tuple[Predicate, ...]) -> Observer:
    @wraps(fn)
    def call_if_meant(message: Message) -> None:
        if holds(checks, message):
            fn(message)

    return call_if_meant
