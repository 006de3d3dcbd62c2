"""Opens a router, and ends all its runs when its block is left."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ._router import Router
from .service_nursery import open_service_nursery

UNWIND_S = 1.0
"""How many seconds a cut run may take to unwind before its chain stops waiting."""

HANDLER_S = 1.0
"""How many seconds the handler of an interruption may take."""


@asynccontextmanager
async def open_router(
    *, unwind_s: float = UNWIND_S, handler_s: float = HANDLER_S
) -> AsyncIterator[Router]:
    """Open a router; leaving the block ends all its runs.

    Args:
        unwind_s: How many seconds a cut run may take to unwind before its chain stops waiting.
        handler_s: How many seconds the handler of an interruption may take.
    """
    router: Router | None = None
    try:
        async with open_service_nursery("the router is closing") as nursery:
            router = Router(nursery, unwind_s=unwind_s, handler_s=handler_s)
            try:
                yield router
            finally:
                router.close("shutdown")
                router.timers.close()
    finally:
        if router is not None:
            router.seal()
