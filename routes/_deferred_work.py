"""The work that follows a publication: states are computed and log lines are written.

Rules:
1. This work is done in order, and before anything else is published.
2. If the publication cut running runs, their tasks go first: no node can clean up until the
   publisher waits for something, so whatever is done before that delays the clean-up.  The rest is
   done when one of these runs has unwound, one scheduler step after it began to wait in its
   clean-up, or as soon as somebody publishes or asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from ._listeners import Listeners
from ._message import Message
from ._run import Run
from ._timer_task import TimerTask

DEPTH_LIMIT = 32
"""How deep sync routes may trigger one another within one publication."""


class DeferredWork:
    """Keeps what is left to do after the current or the last publication; a base of ``Router``.

    Attributes:
        nursery: Owns the tasks of all runs.
        listeners: The functions called when something happens.
        waits: Whether a publication is over but its deferred work is not done yet.
        unreported: The runs whose cut is not recorded yet, and which the listener has not got.
    """

    __slots__ = (
        "_calls", "_clock", "_depth", "_depth_limit", "_is_closed", "_is_due", "_is_urgent",
        "_reported_later", "_rest", "_unwatched", "listeners",
        "nursery", "unreported", "waits",
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
        self.unreported: list[Run] = []
        self.waits = self._is_due = self._is_closed = False
        self._is_urgent = False  # a run of `unreported` had ended, so nothing is gained by waiting
        self._depth = 0
        self._depth_limit = DEPTH_LIMIT
        self._reported_later: type | None = None
        self._clock = TimerTask.of_run()
        self._calls: list[Callable[[], None]] = []
        self._unwatched: list[Run] = []  # whose cut is reported, but not limited in time
        self._rest: tuple[Message, Any] | None = None

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

    def add_cut(self, run: Run) -> None:
        """Keep a run that is cut now, until its cut is reported."""
        self.unreported.append(run)

    def report_soon(self) -> None:
        """Report the cuts within this publication: a run that was cut has ended already."""
        self._is_urgent = True

    def reports_later(self, event_class: type) -> bool:
        """Return whether cuts by events of a class are reported after the runs' next step."""
        return self.listeners.run_cut is None or event_class is self._reported_later

    def report_in_time(self, cause: Message | None) -> None:
        """Report the cuts that are not reported yet: now, or later if they may wait.

        Args:
            cause: The message that cut; ``None`` if no message did, and then nothing waits.
        """
        if not self._depth:
            self.waits = True  # as after a publication
            self.catch_up()
            return
        self._is_due = True
        if self._is_urgent or cause is None or not self.reports_later(type(cause.event)):
            self.report_cuts()

    def report_cuts(self) -> None:
        """Report the cuts that are not reported yet, because somebody asks what they changed."""
        self._is_urgent = False
        while self.unreported:
            runs, self.unreported = self.unreported, []  # a listener may call this: keep the order
            for run in runs:
                if run.outcome is None:
                    self._unwatched.append(run)
                if self._depth:
                    self.listeners.notify(self.listeners.run_cut, run)  # it silences the voice
                else:
                    self._as_published(self.listeners.notify, self.listeners.run_cut, run)
                run.chain.note_cut(run)

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

    def _hand_out(self, message: Message, rest: Any) -> None:
        """Deliver a message to those that could wait for the runs that it cut."""
        raise NotImplementedError

    def _publication_over(self) -> None:
        """Finish now, or, if runs were cut, once they have had their next step."""
        if self._is_closed or not (self.unreported or self._unwatched):
            self._finish()
            return
        self.waits = True

    def call_in_next_step(self) -> None:
        """Finish in the next scheduler step, unless somebody does so before."""
        self._clock.call_in_next_step(self._catch_up_at_last)

    def catch_up(self) -> None:
        """Finish the deferred work of the last publication now: somebody asks for its effects."""
        if self.waits:
            self.waits = False
            # In this context log lines carry the name of the call, whoever asks first.
            self.nursery.parent_task.context.copy().run(self._finish)

    def _finish_deferred(self) -> None:
        """Finish what is left; from now on nothing waits."""
        self._is_closed = True
        self.catch_up()

    def _finish(self) -> None:
        if self.unreported:
            self.report_cuts()
        rest, self._rest = self._rest, None
        if rest is not None:
            self._as_published(self._hand_out, *rest)
            self.report_cuts()  # those that the rest made
        self._is_due = False
        self._depth_limit = DEPTH_LIMIT
        unwatched, self._unwatched = self._unwatched, []
        calls, self._calls = self._calls, []
        for run in unwatched:
            run.chain.watch_unwinding(run)
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
