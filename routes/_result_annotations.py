"""Reads from the annotations of a chain's functions which values they produce.

A stage that is annotated to produce text, numbers or containers cannot come right before
``.broadcast()``, which publishes events; that is found when the chain is built.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Generator,
    Iterable,
    Iterator,
    Sequence,
)
from dataclasses import is_dataclass
from types import FunctionType, NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from ._signatures import original
from ._stages import Map, Stage, Stream, Through

_NO_EVENT = (str, bytes, bytearray, int, float, complex, dict, list, tuple, set, frozenset)
"""Classes of values that cannot be published, if no dataclass inherits from them."""

_ITERATED = (AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterable, Iterator)
_LISTED = (list, tuple, set, frozenset)
"""What ``.stream()`` passes on one by one, too; see ``_stage_results.py``."""

_returns: WeakKeyDictionary[FunctionType, Any] = WeakKeyDictionary()
"""Annotations by function: calls build the same chains again and again."""


def unpublishable(stages: Sequence[Stage]) -> tuple[Stage, str] | None:
    """Return the stage whose annotation says that no value of the chain is an event.

    Args:
        stages: The stages of the chain so far.

    Returns:
        The stage and the annotated class; ``None`` if the chain may produce events.
    """
    for stage in reversed(stages):
        if isinstance(stage, (Map, Stream, Through)):
            annotated = _annotation_of(stage.fn)
            values = _values(annotated, lists=not isinstance(stage, Map))
            kinds = [kind for kind in _members(values) if kind is not NoneType]
            if kinds and all(map(_is_no_event, kinds)):
                return stage, " or ".join(kind.__name__ for kind in kinds)
            return None
    return None


def _annotation_of(fn: object) -> Any:
    """Return what a function is annotated to return; ``Any`` if that is not known."""
    function = original(fn)
    function = getattr(function, "__func__", function)
    # A decorator that makes events of text keeps the annotations of what it decorates.
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return Any
    if function not in _returns:
        try:
            annotated = get_type_hints(function).get("return", Any)
        except Exception:  # noqa: BLE001 - foreign annotations, such as a name for type checkers only
            annotated = Any
        _returns[function] = annotated
    return _returns[function]


def _values(annotated: Any, *, lists: bool) -> Any:
    """Return the annotation of the values that a stage passes on."""
    iterated = (*_ITERATED, *_LISTED) if lists else _ITERATED
    items = get_args(annotated)
    return items[0] if items and get_origin(annotated) in iterated else annotated


def _members(annotated: Any) -> list[Any]:
    """Return the members of a union, each without its own arguments."""
    is_union = get_origin(annotated) in (Union, UnionType)
    members = get_args(annotated) if is_union else (annotated,)
    return [get_origin(member) or member for member in members]


def _is_no_event(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, _NO_EVENT) and not is_dataclass(kind)
