"""A nursery for tasks that serve a block, and end with it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType

import trio


def open_service_nursery(reason: str) -> AbstractAsyncContextManager[trio.Nursery]:
    """Open a nursery whose tasks are cancelled when the block is left.

    What the block raises arrives as it is, unless a task has raised, too: then both come in an
    exception group, as what a task raises always does.  That tasks were cancelled from outside is
    no error of theirs.

    Args:
        reason: Why the tasks end, for people who read `trio.Cancelled`.
    """
    return _ServiceNursery(reason)


class _ServiceNursery:
    """No ``@asynccontextmanager``: each call has a few, and its generator takes 0.8 kB."""

    __slots__ = ("_manager", "_nursery", "_reason")

    _nursery: trio.Nursery

    def __init__(self, reason: str) -> None:
        self._reason = reason
        self._manager = trio.open_nursery()

    async def __aenter__(self) -> trio.Nursery:
        self._nursery = await self._manager.__aenter__()
        return self._nursery

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self._nursery.cancel_scope.cancel(reason=self._reason)
        if error is None or _has_cancellation(error):
            # A cancellation is for the scope that is cancelled, which may be the nursery's.
            return await self._manager.__aexit__(kind, error, traceback)  # noqa: ASYNC102 - its end
        try:
            await self._manager.__aexit__(None, None, None)  # noqa: ASYNC102 - waits for its tasks
        except BaseExceptionGroup as group:
            failed = group.split(trio.Cancelled)[1]
            if failed is not None:
                raise BaseExceptionGroup(failed.message, [error, *failed.exceptions]) from None
        return False


def _has_cancellation(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)
