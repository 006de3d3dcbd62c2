"""A nursery for tasks that serve a block, and end with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def open_service_nursery(reason: str) -> AsyncIterator[trio.Nursery]:
    """Open a nursery whose tasks are cancelled when the block is left.

    What the block raises arrives as it is, unless a task has raised, too: then both come in an
    exception group, as what a task raises always does.

    Args:
        reason: Why the tasks end, for people who read `trio.Cancelled`.
    """
    raised: Exception | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except Exception as error:
                raised = error
                raise
            finally:
                nursery.cancel_scope.cancel(reason=reason)
    except BaseExceptionGroup as group:
        if raised is None or group.exceptions != (raised,):
            raise
    if raised is not None:
        raise raised
