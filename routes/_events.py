"""Events: any class can be one, and each class has one alias.

bargein's events are frozen pydantic models with a ``Literal`` tag in a field named ``type``.
The tag is the alias of the class.  Any other class (your own pydantic model, a slotted
dataclass for audio) can be routed too; its alias is its ``type`` if that is a string, else its
class name in snake case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import TypeVar
from weakref import WeakSet, WeakValueDictionary

from pydantic import BaseModel, ConfigDict

from ._errors import RouteDefinitionError
from .type_annotations import own_annotations

E = TypeVar("E")

_by_alias: WeakValueDictionary[str, type] = WeakValueDictionary()
registered_classes: WeakSet[type] = WeakSet()
_aliases: dict[type, str] = {}


class Event(BaseModel):
    """An immutable fact in the past tense.

    Subclass it with a ``Literal`` tag and the fields of the fact::

        class OrderPlaced(Event):
            type: Literal["order.placed"] = "order.placed"
            drink: str

    Unknown fields raise when the event is created.  An event has neither time nor id; the
    ``Message`` around it has both.
    """

    # Build each schema when the first event of its class is created, to keep imports fast.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: object) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        register(cls)


def register(cls: type[E]) -> type[E]:
    """Register a class under its alias; usable as a decorator.

    Subclasses of ``Event`` are registered when they are defined.  Registering the same class again
    does nothing.

    Args:
        cls: Any class whose instances are published; it is returned.

    Raises:
        RouteDefinitionError: A class of another name already has this alias.
    """
    alias = alias_of(cls)
    known = _by_alias.get(alias)
    if known is not None and known is not cls and known.__qualname__ != cls.__qualname__:
        raise RouteDefinitionError(
            f"the alias {alias!r} of {cls.__qualname__} belongs to {known.__qualname__} already; "
            f"give {cls.__qualname__} a `type` of its own"
        )
    _by_alias[alias] = cls
    registered_classes.add(cls)
    return cls


def alias_of(cls: type) -> str:
    """Return the alias of an event class, such as ``"user.started_speaking"``."""
    alias = _aliases.get(cls)
    if alias is None:
        alias = _aliases[cls] = _find_alias(cls)
    return alias


def _find_alias(cls: type) -> str:
    fields = getattr(cls, "model_fields", None)
    if fields and "type" in fields and isinstance(fields["type"].default, str):
        # A subclass without its own tag is named after itself, not after its parent.
        if "type" in own_annotations(cls):
            return str(fields["type"].default)
    else:
        own = cls.__dict__.get("type")
        if not isinstance(own, str) and "type" in own_annotations(cls):
            # A slotted dataclass has a descriptor where its default was.
            own = getattr(getattr(cls, "__dataclass_fields__", {}).get("type"), "default", None)
        if isinstance(own, str):
            return own
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", cls.__name__).lower()


def class_of(alias: str) -> type | None:
    """Return the registered class with this alias, or ``None`` if there is none."""
    return _by_alias.get(alias)


def classes_matching(pattern: str) -> Iterator[type]:
    """Yield the registered classes whose alias matches a shell-style pattern (``"user.*"``)."""
    for cls in list(registered_classes):
        if fnmatchcase(alias_of(cls), pattern):
            yield cls
