"""One task for all alarms of a trio run, whichever router they are of, and for the next step."""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Protocol

import trio
from trio.lowlevel import Abort, RunVar, Task, reschedule, spawn_system_task

SPARE_ENTRIES = 1000
"""How many entries the heap may have at least before it is cleared of outdated ones."""


class Sleeper(Protocol):
    """Who wants to be woken at a time."""

    wakes_at_s: float
    """When; the clock alone sets it."""

    def wake(self, now_s: float) -> None:
        """Wake up: it is time. Raises nothing."""


class AlarmClock:
    """Wakes sleepers at their times.

    A task with its scope takes more memory than all else that a router needs to be woken; so there
    is one for all routers, a system task of trio, which ends with the run.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Sleeper]] = []
        self._entries = count()  # of two sleepers for the same time the first comes first
        self._entries_allowed = SPARE_ENTRIES
        self._scope = trio.CancelScope()
        self._looks_at_s = math.inf
        self._sleeping: Task | None = None
        self._next_step: list[Callable[[], None]] = []

    @classmethod
    def of_run(cls) -> AlarmClock:
        """Return the clock of the trio run that this is called in."""
        try:
            return _clock.get()
        except LookupError:
            clock = cls()
            _clock.set(clock)
            spawn_system_task(clock._tick, name="alarm clock of all routers")
            return clock

    def set(self, sleeper: Sleeper, at_s: float) -> None:
        """Wake a sleeper at a time, and at none that it was to be woken at before.

        Args:
            sleeper: Whom.
            at_s: When, in seconds of trio's clock; infinite: never.
        """
        sleeper.wakes_at_s = at_s
        if at_s < math.inf:
            heappush(self._heap, (at_s, next(self._entries), sleeper))
            if len(self._heap) > self._entries_allowed:
                self._clear_up()
        self._look_in_time()

    def forget(self, sleeper: Sleeper) -> None:
        """Wake a sleeper no more, and keep nothing of it."""
        self.set(sleeper, math.inf)
        self._clear_up()

    def call_in_next_step(self, fn: Callable[[], None]) -> None:
        """Call a plain function once every task that is ready now has had its step.

        Args:
            fn: What to call; it raises nothing.
        """
        self._next_step.append(fn)
        task, self._sleeping = self._sleeping, None
        if task is not None:
            reschedule(task)  # costs a tenth of what moving a deadline does

    def _clear_up(self) -> None:
        self._heap = [entry for entry in self._heap if entry[0] == entry[2].wakes_at_s]
        heapify(self._heap)
        self._entries_allowed = max(SPARE_ENTRIES, 2 * len(self._heap))

    def _look_in_time(self) -> None:
        next_s = self._next_s()
        if next_s != self._looks_at_s:
            # Moving a deadline costs no scheduler step, unlike waking a task; so who puts off what
            # is next wakes nobody.
            self._looks_at_s = self._scope.deadline = next_s

    def _next_s(self) -> float:
        heap = self._heap
        while heap and heap[0][0] != heap[0][2].wakes_at_s:
            heappop(heap)
        return heap[0][0] if heap else math.inf

    async def _tick(self) -> None:
        while True:
            with self._scope:
                await self._sleep()
            self._scope = trio.CancelScope()
            self._looks_at_s = math.inf
            self._call_next_step()
            now_s = trio.current_time()
            for sleeper in self._due(now_s):
                sleeper.wake(now_s)
            self._look_in_time()

    async def _sleep(self) -> None:
        """Sleep until the deadline, or until there is something to call in the next step."""

        def stop_sleeping(_: object) -> Abort:
            self._sleeping = None
            return Abort.SUCCEEDED

        if not self._next_step:
            self._sleeping = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(stop_sleeping)
        # trio runs what is ready in no order; behind this, all of it has run.
        await trio.lowlevel.cancel_shielded_checkpoint()

    def _call_next_step(self) -> None:
        calls, self._next_step = self._next_step, []
        for fn in calls:
            fn()

    def _due(self, now_s: float) -> list[Sleeper]:
        due = []
        while self._next_s() <= now_s:
            sleeper = heappop(self._heap)[2]
            sleeper.wakes_at_s = math.inf
            due.append(sleeper)
        return due


_clock: RunVar[AlarmClock] = RunVar("bargein_alarm_clock")


def start_alarm_clock() -> None:
    """Start the task that wakes the routers of this trio run, where none has started it yet.

    The first router of a run does so by itself; for whoever counts tasks, or decides their order.
    """
    AlarmClock.of_run()
