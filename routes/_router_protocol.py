"""What a running chain needs from its router."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import trio

from ._listeners import Listeners
from ._message import Message
from ._message_sinks import AsyncSinks
from ._pause_gate import PauseGate
from ._route import Route
from ._run import Run
from ._run_outcome import Outcome
from ._stage_pipeline import Publish


class ChainRouter(Protocol):
    """A router, as its chains see it.

    Attributes:
        nursery: Owns the tasks of all runs.
        unwind_s: How many seconds a cut run may take to unwind before its chain stops waiting.
        handler_s: How many seconds the handler of an interruption may take.
        listeners: The functions called when something happens.
        withholds: Whether a message is withheld from the chains of a source, so that it neither
            triggers, cuts, pauses nor resumes them; ``None`` withholds nothing.
        gate: Shut while everything is paused, so that nothing begins.
        async_sinks: The async sinks, and the runs whose messages wait for them.
        closing: The outcome of runs that end because the router does; ``None`` while it is open.
        closed: Whether all its tasks have ended, so that nothing is triggered any more.
        waits: Whether a publication is over but its deferred work is not done yet.
    """

    nursery: trio.Nursery
    unwind_s: float
    handler_s: float
    listeners: Listeners
    withholds: Callable[[str, Message], bool] | None
    gate: PauseGate
    async_sinks: AsyncSinks
    closing: Outcome | None
    closed: bool
    waits: bool

    def publisher(self, source: str) -> Publish:
        """Return what publishes the values that the chains of a source produce."""
        ...

    def next_run_id(self) -> int:
        """Return the number of a new run."""
        ...

    def report(self, run: Run | None, route: Route, stage: str, error: Exception) -> None:
        """Log a failure of a chain, and call the listener for failures."""
        ...

    def add_cut(self, run: Run) -> None:
        """Keep a run that is cut now, until its cut is reported."""
        ...

    def catch_up(self) -> None:
        """Finish the deferred work of a publication that is over."""
        ...

    def call_in_next_step(self) -> None:
        """Finish the deferred work in the next scheduler step, unless somebody does so before."""
        ...

    def report_soon(self) -> None:
        """Report the cuts within this publication: a run that was cut has ended already."""
        ...

    def report_in_time(self, cause: Message | None) -> None:
        """Report the cuts that are not reported yet: now, or later if they may wait."""
        ...

    def report_cuts(self) -> None:
        """Record and report the cuts that are waiting for it."""
        ...

    def retire(self, chain: object) -> None:
        """Forget a removed chain that has no more runs."""
        ...

    def call_at(self, key: object, at_s: float, fn: Callable[[], None]) -> None:
        """Call a plain function at a time, unless ``forget(key)`` is called first."""
        ...

    def forget(self, key: object) -> None:
        """Cancel the timer with a key, if there is one."""
        ...
