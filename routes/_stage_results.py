"""What a stage can return, and how it is iterated: under one cancel scope for each generator.

Trio's scopes must close in reverse order of opening, and a suspended generator may hold a scope or
a nursery of its own.  So no scope is opened around a single step, nor around closing it.  The scope
of the run cannot serve for this: a node may yield a value in the very step of the cut that cancels
that scope, and has then yet to be closed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import AbstractAsyncContextManager
from enum import IntEnum
from inspect import isawaitable
from types import GeneratorType, TracebackType
from typing import Any

import trio

from ._errors import ScopeLeakError


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


CLOSE_S = 1.0
"""How many seconds the clean-up of an iterator may take if it was left early."""


class closing:
    """Iterates an async iterator under a scope that shields its clean-up if it is left early.

    Enter it before the first step.  Leaving it closes the iterator, in bounded time, whatever
    happens around it.
    """

    __slots__ = ("_items", "_iterator", "_scope")

    def __init__(self, items: Any) -> None:
        self._items = items
        self._iterator = aiter(items)
        self._scope = trio.CancelScope()

    async def __aenter__(self) -> Any:
        self._scope.__enter__()
        return self._iterator

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        scope = self._scope
        # Shielded, because the iterator's own `finally` may have to send a goodbye to a server.
        scope.shield = True
        scope.deadline = trio.current_time() + CLOSE_S
        try:
            await _close(self._iterator)  # noqa: ASYNC102 - its scope was opened earlier
            if self._iterator is not self._items:
                await _close(self._items)  # noqa: ASYNC102 - ditto
        except BaseException as failure:  # noqa: ASYNC103 - the scope's own, else raised
            if not scope.__exit__(type(failure), failure, failure.__traceback__):
                raise
        else:
            scope.__exit__(None, None, None)
        return False


async def _close(one: Any) -> None:
    aclose = getattr(one, "aclose", None)
    if aclose is None:
        return
    try:
        await aclose()
    except BaseExceptionGroup as group:
        # A nursery wraps a GeneratorExit in a group, which Python does not accept as one.
        others = group.split(GeneratorExit)[1]
        if others is not None:
            raise others from None


def explained(error: Exception) -> Exception:
    """Return an error, or a ``ScopeLeakError`` in place of trio's own error about scopes."""
    if isinstance(error, RuntimeError) and str(error).startswith("Cancel scope stack corrupted"):
        leak = ScopeLeakError()
        leak.__cause__ = error
        return leak
    return error
