"""A nursery for tasks that serve a block, and end with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def open_service_nursery(reason: str) -> AsyncIterator[trio.Nursery]:
    """Open a nursery whose tasks are cancelled when the block is left.

    What the block raises arrives as it is; only what a task raises comes in an exception group.

    Args:
        reason: Why the tasks end, for people who read `trio.Cancelled`.
    """
    raised: Exception | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield nursery
        except Exception as error:  # noqa: BLE001  # raised below, past the nursery's group
            raised = error
        finally:
            nursery.cancel_scope.cancel(reason=reason)
    if raised is not None:
        raise raised
