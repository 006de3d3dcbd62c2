"""How generators of others are iterated: one cancel scope each, from the first step to the last.

Trio's scopes must close in the order in which they were opened, and a generator may hold a scope or
a nursery of its own while it is suspended.  So no scope is opened around a single step of it, nor
around its closing.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

import trio

from ._errors import ScopeLeakError

CLOSE_S = 1.0
"""How long the clean-up of an iterator that was left early may take, in seconds."""


class closing:
    """Iterates an async iterator under a scope, which shields its clean-up when it is left early.

    Enter it before the first step.  Leaving it closes the iterator, in bounded time, whatever
    happens around it.
    """

    __slots__ = ("_scope", "items", "iterator")

    def __init__(self, items: Any) -> None:
        self.items = items
        self.iterator = aiter(items)
        self._scope = trio.CancelScope()

    async def __aenter__(self) -> Any:
        self._scope.__enter__()
        return self.iterator

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        scope = self._scope
        if self.iterator is self.items and getattr(self.items, "ag_frame", self) is None:
            scope.__exit__(None, None, None)  # the usual case: a generator that is at its end
            return
        # Shielded, as the iterator's own `finally` may have to say goodbye to a server.
        scope.shield = True
        scope.deadline = trio.current_time() + CLOSE_S
        try:
            await _close(self.iterator)  # noqa: ASYNC102 - the scope around it was opened before
            if self.iterator is not self.items:
                await _close(self.items)  # noqa: ASYNC102 - ditto
        except BaseException as failure:  # noqa: ASYNC103 - the scope's own, else raised
            if not scope.__exit__(type(failure), failure, failure.__traceback__):
                raise
        else:
            scope.__exit__(None, None, None)


async def _close(one: Any) -> None:
    aclose = getattr(one, "aclose", None)
    if aclose is None:
        return
    try:
        await aclose()
    except BaseExceptionGroup as group:
        # A nursery wraps the GeneratorExit that passes it, and Python does not know it again.
        others = group.split(GeneratorExit)[1]
        if others is not None:
            raise others from None


def explained(error: Exception) -> Exception:
    """Return an error, or the `ScopeLeakError` that trio's own error about scopes comes of."""
    if isinstance(error, RuntimeError) and str(error).startswith("Cancel scope stack corrupted"):
        leak = ScopeLeakError()
        leak.__cause__ = error
        return leak
    return error
