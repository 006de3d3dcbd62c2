"""The run that a piece of code works for, and the gate that lets nothing begin in a pause."""

from __future__ import annotations

from contextvars import Context, ContextVar

import trio

from ._run import Run

CURRENT_RUN: ContextVar[Run | None] = ContextVar("bargein_run", default=None)


def current_run() -> Run | None:
    """Return the run that this code works for; ``None`` outside of runs."""
    return CURRENT_RUN.get()


def run_in(context: Context) -> Run | None:
    """Return the run that a task works for, given its context; safe from any thread."""
    return context.get(CURRENT_RUN)


class PauseGate:
    """Shut while everything is paused, also for work that no run of a chain does."""

    __slots__ = ("_opened",)

    def __init__(self) -> None:
        self._opened: trio.Event | None = None

    @property
    def is_shut(self) -> bool:
        """Whether nothing may begin now."""
        return self._opened is not None

    def shut(self) -> None:
        """Let nothing begin until ``open()``."""
        if self._opened is None:
            self._opened = trio.Event()

    def open(self) -> None:
        """Let everything that waits begin."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.set()

    async def passed(self) -> None:
        """Wait while it is shut; no checkpoint while it is open.  Cancelling this is safe."""
        while self._opened is not None:
            await self._opened.wait()


async def until_resumed() -> None:
    """Wait while the call that this code works for is paused; no checkpoint if it is not.

    For models that send a second request, such as a retry: nothing begins in a pause.  Outside a
    run of a chain, and of what it started, this returns at once.  Cancelling this is safe.
    """
    run = CURRENT_RUN.get()
    if run is not None:
        await run.chain.dispatch.gate.passed()
