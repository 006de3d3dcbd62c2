"""The work that follows a publication: states are computed and log lines are written.

Rules:
1. This work is done in order, and before anything else is published.
2. If the publication cut running runs, their tasks go first: no node can clean up until the
   publisher waits for something, so whatever is done before that delays the clean-up.  The rest is
   done one scheduler step after theirs, or as soon as somebody publishes or asks.  If nobody
   listens, no extra step is scheduled.
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
    """What a chain does when one of its runs is cut."""

    def note_cut(self, run: Run) -> None:
        """Count the cut, and record why it was made."""
        ...

    def watch_unwinding(self, run: Run) -> None:
        """Limit how long the chain waits for this running run to unwind."""
        ...

    def drop_delivered(self, run: Run) -> None:
        """Forget a run whose stages ended before the cut, once its handler was called."""
        ...


class Aftermath:
    """Keeps what is left to do after the current or the last publication; a base of ``Router``.

    Attributes:
        nursery: Owns the tasks of all runs.
        listeners: The functions called when something happens.
        waits: Whether a publication is over but its aftermath is not done yet.
        untold: The cuts that are not recorded yet, and that the listener does not know of.
    """

    __slots__ = (
        "_calls", "_clock", "_cut", "_depth", "_depth_limit", "_is_closed", "_is_due", "_rest",
        "_told_later", "listeners", "nursery", "untold", "waits",
    )  # fmt: skip

    def __init__(self, nursery: trio.Nursery, listeners: Listeners) -> None:
        """Start with nothing to do.

        Args:
            nursery: Raises the errors that must end more than the function that raised them;
                functions are called in the context of the nursery's task.
            listeners: Called for each cut.
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
        """Report cuts by events of this class, and of no other, only after the runs' next step."""
        self._told_later = event_class

    def call_after(self, fn: Callable[[], None]) -> None:
        """Call a plain function once the publication under way is over; at once if there is none.

        A publication that cut running runs is over once these have had a scheduler step, at
        ``catch_up()``, or when something else is published.

        Args:
            fn: The function; if it is scheduled already, it is still called only once.
        """
        if not self._depth:
            if self.waits:
                self.catch_up()
            fn()
        elif fn not in self._calls:
            self._calls.append(fn)
            self._is_due = True

    def run_cut(self, chain: CutChain, run: Run, cause: Message | None) -> None:
        """Record and report that a run was cut, now or later, and have its unwinding watched.

        Args:
            chain: Its chain.
            run: The run.
            cause: The message that cut it; ``None`` if no message did.
        """
        if run.outcome is None and self._depth:
            self._is_due = True
            entry = (chain, run)
            if self.listeners.run_cut is None:  # nobody waits for the report
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
        self.listeners.notify(self.listeners.run_cut, run)  # first: it silences the voice
        chain.note_cut(run)
        if run.outcome is not None:
            chain.drop_delivered(run)

    def tell_cuts(self) -> None:
        """Report the cuts that are not reported yet, because somebody asks what they changed."""
        while self.untold:
            untold, self.untold = self.untold, []  # a listener may call this again: keep the order
            for chain, run in untold:
                self._as_published(self.listeners.notify, self.listeners.run_cut, run)
                chain.note_cut(run)

    def _as_published(self, fn: Callable[..., None], *args: Any) -> None:
        """Call a function as if within the publication: what it gives ``call_after()`` waits."""
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
        """Finish now, or, if runs were cut, after their next scheduler step."""
        if self._is_closed or not (self._cut or self.untold):
            self._finish()
            return
        self.waits = True
        if self._cut or self._calls or self.listeners.decided is not None:
            self._clock.call_in_next_step(self._catch_up_at_last)

    def catch_up(self) -> None:
        """Finish the last publication's aftermath now, because somebody asks for its effects."""
        if self.waits:
            self.waits = False
            # In this context log lines carry the name of the call, whoever asks first.
            self.nursery.parent_task.context.copy().run(self._finish)

    def _close_aftermath(self) -> None:
        """Finish what is left; from now on nothing waits."""
        self._is_closed = True
        self.catch_up()

    def _finish(self) -> None:
        self.tell_cuts()
        rest, self._rest = self._rest, None
        if rest is not None:
            self._as_published(rest)
            self.tell_cuts()  # those that the rest made
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
        except BaseException as error:  # noqa: BLE001, ASYNC103 - raised in the router's nursery
            if not self._is_closed:
                self.nursery.start_soon(_raise, error)


async def _raise(error: BaseException) -> None:
    raise error
