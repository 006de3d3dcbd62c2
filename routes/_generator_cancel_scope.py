"""Iterates foreign generators under one cancel scope each, from the first step to the last.

Trio's scopes must close in reverse order of opening, and a suspended generator may hold a scope or
a nursery of its own.  So no scope is opened around a single step, nor around closing it.  The scope
of the run cannot serve for this: a node may yield a value in the very step of the cut that cancels
that scope, and has then yet to be closed.  But a cut that wakes an async generator in the middle of
a step ends it, so that nothing is left to close.  Such a cut cancels the scope of the generator
instead: trio then has one scope fewer to cancel before the node wakes.
"""

from __future__ import annotations

from types import AsyncGeneratorType, TracebackType
from typing import Any

import trio

from ._errors import ScopeLeakError

CLOSE_S = 1.0
"""How many seconds the clean-up of an iterator may take if it was left early."""


class _NoGenerator:
    """Stands for a generator that is never in a step."""

    ag_running = False


_NO_GENERATOR = _NoGenerator()


class closing:
    """Iterates an async iterator under a scope that shields its clean-up if it is left early.

    Enter it before the first step.  Leaving it closes the iterator, in bounded time, whatever
    happens around it.

    Attributes:
        items: What is iterated.
        iterator: Its iterator.
        scope: The scope of the iterator; cancel it only while ``generator.ag_running``.
        generator: The iterator if it is an async generator that is not left yet; else an object
            whose ``ag_running`` is false.
    """

    __slots__ = ("generator", "items", "iterator", "scope")

    def __init__(self, items: Any) -> None:
        self.items = items
        self.iterator = aiter(items)
        self.scope = trio.CancelScope()
        self.generator = items if type(items) is AsyncGeneratorType else _NO_GENERATOR

    async def __aenter__(self) -> Any:
        self.scope.__enter__()
        return self.iterator

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        scope = self.scope
        self.generator = _NO_GENERATOR
        if self.iterator is self.items and getattr(self.items, "ag_frame", self) is None:
            return scope.__exit__(kind, error, traceback)  # the usual case: an exhausted generator
        # Shielded, because the iterator's own `finally` may have to send a goodbye to a server.
        scope.shield = True
        scope.deadline = trio.current_time() + CLOSE_S
        try:
            await _close(self.iterator)  # noqa: ASYNC102 - its scope was opened earlier
            if self.iterator is not self.items:
                await _close(self.items)  # noqa: ASYNC102 - ditto
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
