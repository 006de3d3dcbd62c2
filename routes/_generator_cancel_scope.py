"""Iterates foreign generators under one cancel scope each, from the first step to the last.

Trio's scopes must close in reverse order of opening, and a suspended generator may hold a scope or
a nursery of its own.  So no scope is opened around a single step, nor around closing it.  The scope
of the run cannot serve for this: a node may yield a value in the very step of the cut that cancels
that scope, and has then yet to be closed.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import trio

from ._errors import ScopeLeakError

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
