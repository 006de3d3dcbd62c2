"""A function that runs beside a block until the block is left, whatever is cancelled meanwhile."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import trio

from .service_nursery import open_service_nursery


@asynccontextmanager
async def run_beside(service: Callable[[], Awaitable[None]], reason: str) -> AsyncIterator[None]:
    """Run a function until the block is left, also while that takes time after a cancellation.

    Args:
        service: What the block needs until its end.
        reason: Why it ends, for people who read `trio.Cancelled`.
    """
    scope = trio.CancelScope(shield=True)

    async def run() -> None:
        with scope:
            await service()

    async with open_service_nursery(reason) as nursery:
        nursery.start_soon(run, name="service")
        try:
            yield
        finally:
            scope.cancel(reason=reason)
