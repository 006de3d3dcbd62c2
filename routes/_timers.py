"""Calls a router's plain functions at set times, or in the next scheduler step.

One task wakes all routers of a trio run: a task and its scope take more memory than everything
else a router needs for this.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count

import trio
from trio.lowlevel import Abort, RunVar, Task, reschedule, spawn_system_task

SPARE_ENTRIES = 1000
"""The heap is never cleared of outdated entries while it has no more than this many."""

Notify = Callable[[Callable[[], None]], None]

_NEVER = (math.inf, lambda: None)


class Timers:
    """The timers of one router: at most one function and time for each key.

    Attributes:
        wakes_at_s: When they are woken next, in seconds of trio's clock; only the task sets it.
    """

    __slots__ = ("_clock", "_is_closed", "_notify", "_nursery", "_waiting", "wakes_at_s")

    def __init__(self, nursery: trio.Nursery, notify: Notify) -> None:
        """Start without timers.

        Args:
            nursery: Raises the errors that must end more than the function that raised them;
                functions are called in the context of the nursery's task, whoever set them.
            notify: Calls a function, and lets no ``Exception`` out.
        """
        self.wakes_at_s = math.inf
        self._clock = TimerTask.of_run()
        self._nursery = nursery
        self._notify = notify
        self._waiting: dict[object, tuple[float, Callable[[], None]]] = {}
        self._is_closed = False

    def set(self, key: object, at_s: float, fn: Callable[[], None]) -> None:
        """Call a function at a time; this replaces the timer that the key had."""
        if self._is_closed:
            return
        before = self._waiting.get(key)
        self._waiting[key] = (at_s, fn)
        if at_s < self.wakes_at_s:
            self._clock.set(self, at_s)
        elif before is not None and before[0] == self.wakes_at_s:
            self._clock.set(self, self._next_s())

    def cancel(self, key: object) -> None:
        """Forget a timer, if there is one."""
        self._waiting.pop(key, None)  # the clock stays set: usually there are others

    def close(self) -> None:
        """Cancel all timers, and accept no more."""
        self._is_closed = True
        self._waiting.clear()
        self._clock.forget(self)

    def wake(self, now_s: float) -> None:
        """Call the functions that are due."""
        # A copy, so that context variables that a function sets stay its own.
        context = self._nursery.parent_task.context.copy()
        try:
            for key in list(self._waiting):
                at_s, fn = self._waiting.get(key, _NEVER)  # an earlier one may have moved it
                if at_s <= now_s:
                    del self._waiting[key]
                    context.run(self._notify, fn)
        except BaseException as error:  # noqa: BLE001, ASYNC103 - raised in the router's nursery
            raise_later(self._nursery, error)
        self._clock.set(self, self._next_s())

    def _next_s(self) -> float:
        next_s = math.inf
        for at_s, _ in self._waiting.values():  # faster than min() for one or two
            if at_s < next_s:
                next_s = at_s
        return next_s


def raise_later(nursery: trio.Nursery, error: BaseException) -> None:
    """Raise an error in a task of a nursery, because nobody above would pass it on."""

    async def fail() -> None:
        raise error

    nursery.start_soon(fail)


class TimerTask:
    """Wakes the timers of all routers at their times, in a system task that ends with the run."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timers]] = []
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

    def set(self, sleeper: Timers, at_s: float) -> None:
        """Wake the timers of a router at a time, which replaces its earlier time.

        Args:
            sleeper: Which timers.
            at_s: When, in seconds of trio's clock; infinity means never.
        """
        sleeper.wakes_at_s = at_s
        if at_s < math.inf:
            heappush(self._heap, (at_s, next(self._entries), sleeper))
            if len(self._heap) > self._entries_allowed:
                self._clear_up()
        if not self._is_awake:
            self._move_deadline()

    def forget(self, sleeper: Timers) -> None:
        """Never wake timers again, and drop every reference to it."""
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
                if not self._next_step:
                    self._sleeping = trio.lowlevel.current_task()
                    await trio.lowlevel.wait_task_rescheduled(self._stop_sleeping)
                # trio runs ready tasks in random order; after a checkpoint all of them have run.
                await trio.lowlevel.cancel_shielded_checkpoint()
            self._scope = trio.CancelScope()
            self._wakes_at_s = math.inf
            self._is_awake = True
            calls, self._next_step = self._next_step, []
            for fn in calls:
                fn()
            now_s = trio.current_time()
            for sleeper in self._pop_due(now_s):
                sleeper.wake(now_s)
            self._is_awake = False
            self._move_deadline()

    def _stop_sleeping(self, _: object) -> Abort:
        self._sleeping = None
        return Abort.SUCCEEDED

    def _pop_due(self, now_s: float) -> list[Timers]:
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
