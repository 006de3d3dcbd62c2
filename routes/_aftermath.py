"""What is done once a publication is over: states are worked out, lines are written.

Rules:
1. It is done in its order, and before anything else is published.
2. If the publication has cut runs at work, their tasks go first: no node can clean up before the
   publisher waits for something, so all that is done until then delays the clean-up.  What is left
   is done in the scheduler step after theirs, or as soon as anybody publishes or asks; where nobody
   is to be told of it, no step is made for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import trio

from ._alarm_clock import AlarmClock
from ._listeners import Listeners
from ._message import Message
from ._run import Run

DEPTH_LIMIT = 32
"""How deep sync routes may trigger one another within one publication."""


class CutChain(Protocol):
    """What a chain does about a run of it that was cut."""

    def note_cut(self, run: Run) -> None:
        """Count the cut, and record why it was made."""
        ...

    def watch_unwinding(self, run: Run) -> None:
        """Wait no longer for the run, which is at work, than it may take to unwind."""
        ...

    def drop_delivered(self, run: Run) -> None:
        """Forget the run, whose stages had ended before, once its handler was called."""
        ...


class Aftermath:
    """Knows what is left to do of the publication under way, or of the last one; part of a router.

    Attributes:
        nursery: Owns the tasks of all runs.
        listeners: The functions called when something happens.
        waits: Whether a publication is over, and what is left of it is not done yet.
        untold: The cuts that are not noted yet, and that the listener is not told of.
    """

    __slots__ = (
        "_calls", "_clock", "_cut", "_depth", "_depth_limit", "_is_closed", "_is_due", "_rest",
        "_told_later", "listeners", "nursery", "untold", "waits",
    )  # fmt: skip

    def __init__(self, nursery: trio.Nursery, listeners: Listeners) -> None:
        """Begin with nothing to do.

        Args:
            nursery: Gets what ends more than the function that raised it; functions are called in
                the context of its owner.
            listeners: Are told of cuts.
        """
        self.nursery = nursery
        self.listeners = listeners
        self.untold: list[tuple[CutChain, Run]] = []
        self.waits = self._is_due = self._is_closed = False
        self._depth = 0
        self._depth_limit = DEPTH_LIMIT
        self._told_later: type | None = None
        self._clock = AlarmClock.of_run()
        self._calls: list[Callable[[], None]] = []
        self._cut: list[tuple[CutChain, Run]] = []
        self._rest: Callable[[], None] | None = None

    def tell_later(self, event_class: type | None) -> None:
        """Tell of cuts by events of this class, and no other, when the runs have had their step."""
        self._told_later = event_class

    def call_after(self, fn: Callable[[], None]) -> None:
        """Call a plain function once the publication under way is over; at once if there is none.

        One that has cut runs at work is over when these have had their step, at ``catch_up()``, or
        when something else is published.

        Args:
            fn: The function; one that is to be called already is called once.
        """
        if not self._depth:
            if self.waits:
                self.catch_up()
            fn()
        elif fn not in self._calls:
            self._calls.append(fn)
            self._is_due = True

    def run_cut(self, chain: CutChain, run: Run, cause: Message | None) -> None:
        """Note and tell that a run was cut, now or later, and have it watched.

        Args:
            chain: Its chain.
            run: The run.
            cause: The message that has cut it, if one has.
        """
        if run.outcome is None and self._depth:
            self._is_due = True
            entry = (chain, run)
            if self.listeners.run_cut is None:  # so that nobody waits for it
                chain.watch_unwinding(run)
                self.untold.append(entry)
                return
            self._cut.append(entry)
            if cause is not None and type(cause.event) is self._told_later:
                self.untold.append(entry)
                return
        elif run.outcome is None:
            chain.watch_unwinding(run)
        if self.untold:
            self.tell_cuts()
        self.listeners.notify(self.listeners.run_cut, run)  # first: it ends what is to be heard
        chain.note_cut(run)
        if run.outcome is not None:
            chain.drop_delivered(run)

    def tell_cuts(self) -> None:
        """Tell of the cuts that were not told of yet: somebody asks what they have changed."""
        while self.untold:
            untold, self.untold = self.untold, []  # each is told of in its order, whoever looks
            for chain, run in untold:
                self._as_published(self.listeners.notify, self.listeners.run_cut, run)
                chain.note_cut(run)

    def _as_published(self, fn: Callable[..., None], *args: Any) -> None:
        """Call a function as within the publication: what it has called behind that still waits."""
        waits, self.waits = self.waits, False
        if not self._depth:
            self._depth_limit = DEPTH_LIMIT
        self._depth += 1
        try:
            fn(*args)
        finally:
            self._depth -= 1
            self.waits = waits

    def _publication_over(self) -> None:
        """Do what is left to do; if runs were cut, once they have had their step."""
        if self._is_closed or not (self._cut or self.untold):
            self._finish()
            return
        self.waits = True
        if self._cut or self._calls or self.listeners.decided is not None:
            self._clock.call_in_next_step(self._catch_up_at_last)

    def catch_up(self) -> None:
        """Do what is left of a publication that is over, now: somebody looks."""
        if self.waits:
            self.waits = False
            # Lines in the log bear the name of the call, whoever is the first to ask.
            self.nursery.parent_task.context.copy().run(self._finish)

    def _close_aftermath(self) -> None:
        """Do what is left, and let nothing wait from now on."""
        self._is_closed = True
        self.catch_up()

    def _finish(self) -> None:
        self.tell_cuts()
        rest, self._rest = self._rest, None
        if rest is not None:
            self._as_published(rest)
            self.tell_cuts()  # of what the rest has cut
        self._is_due = False
        self._depth_limit = DEPTH_LIMIT
        cut, self._cut = self._cut, []
        calls, self._calls = self._calls, []
        for chain, run in cut:
            if run.outcome is None:
                chain.watch_unwinding(run)
        for fn in calls:
            self.listeners.notify(fn)

    def _catch_up_at_last(self) -> None:
        try:
            self.catch_up()
        except BaseException as error:  # noqa: BLE001, ASYNC103 - given to its owner
            if not self._is_closed:
                self.nursery.start_soon(_raise, error)


async def _raise(error: BaseException) -> None:
    raise error
