"""The run that a piece of code works for."""

from __future__ import annotations

from contextvars import Context, ContextVar

from ._run import Run

CURRENT_RUN: ContextVar[Run | None] = ContextVar("bargein_run", default=None)


def current_run() -> Run | None:
    """Return the run that this code works for; ``None`` outside of runs."""
    return CURRENT_RUN.get()


def run_in(context: Context) -> Run | None:
    """Return the run that a task works for, given its context; safe from any thread."""
    return context.get(CURRENT_RUN)


async def until_resumed() -> None:
    """Wait while the call that this code works for is paused; no checkpoint if it is not.

    For models that send a second request, such as a retry: nothing begins in a pause.  Outside a
    run of a chain, and of what it started, this returns at once.  Cancelling this is safe.
    """
    run = CURRENT_RUN.get()
    if run is not None:
        await run.chain.dispatch.gate.passed()
