"""What a chain at work needs of the router that it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import trio

from ._listeners import Listeners
from ._message import Message
from ._outcome import Outcome
from ._route import Route
from ._run import Run


class ChainRouter(Protocol):
    """A router, as its chains see it.

    Attributes:
        nursery: Owns the tasks of all runs.
        unwind_s: How long a cut run may take to unwind before it holds up nobody.
        handler_s: How long the handler of an interruption may take.
        listeners: Who is told of what happens.
        withholds: Tells of a source and a message that its chains neither hear of it nor are cut,
            held or released by it; ``None`` withholds nothing.
        closing: The outcome of runs that end because the router does; ``None`` while it is open.
        closed: Whether nothing is triggered any more, as all its tasks have ended.
        waits: Whether a publication is over, and what is left of it is not done yet.
    """

    nursery: trio.Nursery
    unwind_s: float
    handler_s: float
    listeners: Listeners
    withholds: Callable[[str, Message], bool] | None
    closing: Outcome | None
    closed: bool
    waits: bool

    def broadcast(self, source: str, value: Any, run: Run | None) -> None:
        """Publish what a chain gave."""
        ...

    def next_run_id(self) -> int:
        """Return the number of a new run."""
        ...

    def report(self, run: Run | None, route: Route, stage: str, error: Exception) -> None:
        """Log a failure of a chain, and tell whoever listens."""
        ...

    def catch_up(self) -> None:
        """Do what is left of a publication that is over."""
        ...

    def run_cut(self, chain: Any, run: Run, cause: Message | None) -> None:
        """Note and tell that a run was cut, now or later, and have it watched."""
        ...

    def tell_cuts(self) -> None:
        """Note and tell the cuts that wait to be."""
        ...

    def retire(self, chain: object) -> None:
        """Forget a chain that was taken away and has no more runs."""
        ...

    def call_at(self, key: object, at_s: float, fn: Callable[[], None]) -> None:
        """Call a plain function at a time, unless ``forget(key)`` comes before."""
        ...

    def forget(self, key: object) -> None:
        """Take an alarm away, if there is one."""
        ...
