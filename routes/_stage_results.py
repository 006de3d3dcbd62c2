"""What a stage can return: a plain value, an awaitable, or something to iterate."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager
from enum import IntEnum
from inspect import isawaitable
from types import GeneratorType
from typing import Any

from ._generator_cancel_scope import closing


class ResultKind(IntEnum):
    """How to consume a value."""

    PLAIN = 0
    AWAITABLE = 1
    ASYNC_ITERATOR = 2
    ITERATOR = 3
    LISTED = 4
    CHANNEL = 5
    """An async context manager that yields an iterator, as ``trio.as_safe_channel`` makes."""


_kinds: dict[type, ResultKind] = {}


def kind_of(value: object) -> ResultKind:
    """Return how to consume a value; decided once per class."""
    cls = type(value)
    kind = _kinds.get(cls)
    if kind is None:
        kind = _find_kind(value, cls)
        if cls is not GeneratorType:  # a few generators are coroutines, most are not
            _kinds[cls] = kind
    return kind


def _find_kind(value: object, cls: type) -> ResultKind:
    if hasattr(cls, "__aiter__"):
        return ResultKind.ASYNC_ITERATOR
    if isawaitable(value):
        return ResultKind.AWAITABLE
    if hasattr(cls, "__next__"):
        return ResultKind.ITERATOR
    if cls in (list, tuple, range, set, frozenset):
        return ResultKind.LISTED
    if issubclass(cls, AbstractAsyncContextManager):  # pyright: ignore[reportGeneralTypeIssues]  # an ABC, no protocol, at run time
        return ResultKind.CHANNEL
    return ResultKind.PLAIN


def is_iterator(value: object) -> bool:
    """Whether a value is already an iterator, and not a function."""
    kind = _find_kind(value, type(value))
    return kind in (ResultKind.ASYNC_ITERATOR, ResultKind.ITERATOR, ResultKind.LISTED)


def close_unused(value: Any) -> None:
    """Close a value that nobody will await or iterate."""
    close = getattr(value, "close", None)
    if close is not None:
        close()


async def spread(value: Any, *, lists: bool) -> AsyncGenerator[Any, None]:
    """Yield the values of a stage's result one by one, awaiting it if necessary.

    Args:
        value: The result of the stage.
        lists: Whether to iterate lists, tuples and the results of ``trio.as_safe_channel`` too.
    """
    kind = kind_of(value)
    while kind is ResultKind.AWAITABLE:
        value = await value
        kind = kind_of(value)
    if kind is ResultKind.ASYNC_ITERATOR:
        async with closing(value) as items:
            async for item in items:
                yield item
    elif lists and kind is ResultKind.CHANNEL:
        async with value as channel, closing(channel) as items:
            async for item in items:
                yield item
    elif kind is ResultKind.ITERATOR or (lists and kind is ResultKind.LISTED):
        for item in _closing_sync(value):
            yield item
    elif value is not None:
        yield value


def _closing_sync(items: Iterable[Any]) -> Iterable[Any]:
    try:
        yield from items
    finally:
        close_unused(items)
