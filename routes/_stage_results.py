"""What a stage can return: a plain value, an awaitable, or something to iterate."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager
from enum import IntEnum
from inspect import isawaitable
from types import GeneratorType
from typing import Any

from ._generator_cancel_scope import closing


class Shape(IntEnum):
    """How to consume a value."""

    PLAIN = 0
    AWAITABLE = 1
    ASYNC_ITERATOR = 2
    ITERATOR = 3
    LISTED = 4
    CHANNEL = 5
    """An async context manager that yields an iterator, as ``trio.as_safe_channel`` makes."""


_shapes: dict[type, Shape] = {}


def shape_of(value: object) -> Shape:
    """Return how to consume a value; decided once per class."""
    cls = type(value)
    shape = _shapes.get(cls)
    if shape is None:
        shape = _find_shape(value, cls)
        if cls is not GeneratorType:  # a few generators are coroutines, most are not
            _shapes[cls] = shape
    return shape


def _find_shape(value: object, cls: type) -> Shape:
    if hasattr(cls, "__aiter__"):
        return Shape.ASYNC_ITERATOR
    if isawaitable(value):
        return Shape.AWAITABLE
    if hasattr(cls, "__next__"):
        return Shape.ITERATOR
    if cls in (list, tuple, range, set, frozenset):
        return Shape.LISTED
    if issubclass(cls, AbstractAsyncContextManager):  # pyright: ignore[reportGeneralTypeIssues]  # an ABC, no protocol, at run time
        return Shape.CHANNEL
    return Shape.PLAIN


def is_iterator(value: object) -> bool:
    """Whether a value is already an iterator, and not a function."""
    shape = _find_shape(value, type(value))
    return shape in (Shape.ASYNC_ITERATOR, Shape.ITERATOR, Shape.LISTED)


async def spread(value: Any, *, lists: bool) -> AsyncGenerator[Any, None]:
    """Yield the values of a stage's result one by one, awaiting it if necessary.

    Args:
        value: The result of the stage.
        lists: Whether to iterate lists, tuples and the results of ``trio.as_safe_channel`` too.
    """
    shape = shape_of(value)
    while shape is Shape.AWAITABLE:
        value = await value
        shape = shape_of(value)
    if shape is Shape.ASYNC_ITERATOR:
        async with closing(value) as items:
            async for item in items:
                yield item
    elif lists and shape is Shape.CHANNEL:
        async with value as channel, closing(channel) as items:
            async for item in items:
                yield item
    elif shape is Shape.ITERATOR or (lists and shape is Shape.LISTED):
        for item in _closing_sync(value):
            yield item
    elif value is not None:
        yield value


def _closing_sync(items: Iterable[Any]) -> Iterable[Any]:
    try:
        yield from items
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()
