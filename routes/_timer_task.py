"""One task that wakes all routers of a trio run, at their times or in the next scheduler step."""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Protocol

import trio
from trio.lowlevel import Abort, RunVar, Task, reschedule, spawn_system_task

SPARE_ENTRIES = 1000
"""The heap is never cleared of outdated entries while it has no more than this many."""


class Sleeper(Protocol):
    """Something that is woken at a set time."""

    wakes_at_s: float
    """When, in seconds of trio's clock; only the clock sets it."""

    def wake(self, now_s: float) -> None:
        """Do what is due; must not raise."""


class TimerTask:
    """Wakes sleepers at their times.

    A task and its scope take more memory than everything else a router needs for this, so all
    routers share one: a system task of trio that ends with the run.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Sleeper]] = []
        self._entries = count()  # breaks ties: first set, first woken
        self._entries_allowed = SPARE_ENTRIES
        self._scope = trio.CancelScope()
        self._wakes_at_s = math.inf
        self._is_awake = False  # then it moves the deadline once, behind all that it does
        self._sleeping: Task | None = None
        self._next_step: list[Callable[[], None]] = []

    @classmethod
    def of_run(cls) -> TimerTask:
        """Return the timer task of the current trio run."""
        try:
            return _clock.get()
        except LookupError:
            clock = cls()
            _clock.set(clock)
            spawn_system_task(clock._tick, name="timers of all routers")
            return clock

    def set(self, sleeper: Sleeper, at_s: float) -> None:
        """Wake a sleeper at a time, which replaces its earlier time.

        Args:
            sleeper: Whom to wake.
            at_s: When, in seconds of trio's clock; infinity means never.
        """
        sleeper.wakes_at_s = at_s
        if at_s < math.inf:
            heappush(self._heap, (at_s, next(self._entries), sleeper))
            if len(self._heap) > self._entries_allowed:
                self._clear_up()
        if not self._is_awake:
            self._move_deadline()

    def forget(self, sleeper: Sleeper) -> None:
        """Never wake a sleeper again, and drop every reference to it."""
        self.set(sleeper, math.inf)
        self._clear_up()

    def call_in_next_step(self, fn: Callable[[], None]) -> None:
        """Call a plain function once every task that is ready now has run.

        Args:
            fn: What to call; must not raise.
        """
        self._next_step.append(fn)
        task, self._sleeping = self._sleeping, None
        if task is not None:
            reschedule(task)  # a tenth of the cost of moving a deadline

    def _clear_up(self) -> None:
        self._heap = [entry for entry in self._heap if entry[0] == entry[2].wakes_at_s]
        heapify(self._heap)
        self._entries_allowed = max(SPARE_ENTRIES, 2 * len(self._heap))

    def _move_deadline(self) -> None:
        next_s = self._next_s()
        if next_s != self._wakes_at_s:
            # Unlike waking the task, moving the deadline takes no scheduler step, so putting off
            # the next timer wakes nobody.
            self._wakes_at_s = self._scope.deadline = next_s

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
            self._wakes_at_s = math.inf
            self._is_awake = True
            self._call_next_step()
            now_s = trio.current_time()
            for sleeper in self._pop_due(now_s):
                sleeper.wake(now_s)
            self._is_awake = False
            self._move_deadline()

    async def _sleep(self) -> None:
        """Sleep until the deadline, or until there is something to call in the next step."""

        def stop_sleeping(_: object) -> Abort:
            self._sleeping = None
            return Abort.SUCCEEDED

        if not self._next_step:
            self._sleeping = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(stop_sleeping)
        # trio runs ready tasks in random order; after a checkpoint all of them have run.
        await trio.lowlevel.cancel_shielded_checkpoint()

    def _call_next_step(self) -> None:
        calls, self._next_step = self._next_step, []
        for fn in calls:
            fn()

    def _pop_due(self, now_s: float) -> list[Sleeper]:
        due = []
        while self._next_s() <= now_s:
            sleeper = heappop(self._heap)[2]
            sleeper.wakes_at_s = math.inf
            due.append(sleeper)
        return due


_clock: RunVar[TimerTask] = RunVar("bargein_timer_task")


def start_timer_task() -> None:
    """Start the task that wakes the routers of this trio run, unless it runs already.

    The first router does this by itself; call it earlier if you count tasks or fix their order.
    """
    TimerTask.of_run()
