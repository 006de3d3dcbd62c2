"""Calls a router's plain functions at set times, or in the next scheduler step.

One task wakes all routers of a trio run: a task and a cancel scope for each router take 2 kB of a
call, and with a hundred talking calls a tenth of their CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

import trio

SPARE_ENTRIES = 1000
"""The heap is not cleared of outdated entries while it has no more than this many."""

_NEVER = (math.inf, lambda: None)


class Timers:
    """The timers of one router: at most one function and time for each key.

    Attributes:
        wakes_at_s: When they are woken next, in seconds of trio's clock; only the task sets it.
    """

    def __init__(self, nursery: trio.Nursery, notify: Callable[[Callable[[], None]], None]) -> None:
        """Start without timers.

        Args:
            nursery: Raises what functions raise and `notify` lets out; functions are called in the
                context of its own task, whoever set them.
            notify: Calls a function, and lets no ``Exception`` out.
        """
        self._nursery = nursery
        self._notify = notify
        self._task = TimerTask.of_run()
        self._waiting: dict[object, tuple[float, Callable[[], None]]] = {}
        self._is_closed = False
        self.wakes_at_s = math.inf

    def set(self, key: object, at_s: float, fn: Callable[[], None]) -> None:
        """Call a function at a time; this replaces the timer that the key had."""
        if self._is_closed:
            return
        before = self._waiting.get(key)
        self._waiting[key] = (at_s, fn)
        if at_s < self.wakes_at_s:
            self._task.wake(self, at_s)
        elif before is not None and before[0] == self.wakes_at_s:
            self._task.wake(self, self._next_s())

    def cancel(self, key: object) -> None:
        self._waiting.pop(key, None)  # they are still woken: usually there are others

    def call_in_next_step(self, fn: Callable[[], None]) -> None:
        """Call a plain function once every task that is ready now has run."""
        self._task.call_in_next_step(partial(self._call, fn))

    def close(self) -> None:
        """Cancel all timers, and accept no more."""
        self._is_closed = True
        self._waiting.clear()
        self._task.forget(self)

    def call_due(self, now_s: float) -> None:
        """Call the functions whose time has come."""
        # A copy, so that context variables that a function sets stay its own.
        context = self._nursery.parent_task.context.copy()
        for key in list(self._waiting):
            at_s, fn = self._waiting.get(key, _NEVER)  # an earlier one may have moved it
            if at_s <= now_s:
                del self._waiting[key]
                context.run(self._call, self._notify, fn)
        self._task.wake(self, self._next_s())

    def _call(self, fn: Callable[..., None], *args: Any) -> None:
        try:
            fn(*args)
        except BaseException as error:  # noqa: BLE001, ASYNC103 - raised in the router's nursery
            if not self._is_closed:
                self._nursery.start_soon(_raise, error)

    def _next_s(self) -> float:
        return min((at_s for at_s, _ in self._waiting.values()), default=math.inf)


async def _raise(error: BaseException) -> None:
    raise error


class TimerTask:
    """Wakes the timers of all routers, in a system task that ends with the trio run."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timers]] = []
        self._numbers = count()  # of two at one time, that which was set first is woken first
        self._entries_allowed = SPARE_ENTRIES
        self._sleep = trio.CancelScope()
        self._is_awake = False
        self._soon: list[Callable[[], None]] = []
        self._woken = trio.Event()

    @classmethod
    def of_run(cls) -> TimerTask:
        try:
            return _timer_task.get()
        except LookupError:
            task = cls()
            _timer_task.set(task)
            trio.lowlevel.spawn_system_task(task._call_all, name="timers of all routers")
            return task

    def wake(self, timers: Timers, at_s: float) -> None:
        """Wake timers at a time, which replaces their earlier one; infinity means never."""
        timers.wakes_at_s = at_s
        if at_s < math.inf:
            heappush(self._heap, (at_s, next(self._numbers), timers))
            if len(self._heap) > self._entries_allowed:
                self._clear_up()
        if not self._is_awake and self._sleep.deadline != self._next_s():
            # Unlike waking the task, moving the deadline takes no scheduler step, so putting off
            # the next timer wakes nobody.
            self._sleep.deadline = self._next_s()

    def forget(self, timers: Timers) -> None:
        """Never wake timers again, and drop every reference to them."""
        self.wake(timers, math.inf)
        self._clear_up()

    def call_in_next_step(self, fn: Callable[[], None]) -> None:
        """Call a plain function that raises nothing once all tasks that are ready now have run."""
        self._soon.append(fn)
        self._woken.set()

    def _clear_up(self) -> None:
        self._heap = sorted(entry for entry in self._heap if entry[0] == entry[2].wakes_at_s)
        self._entries_allowed = max(SPARE_ENTRIES, 2 * len(self._heap))

    def _next_s(self) -> float:
        heap = self._heap
        while heap and heap[0][0] != heap[0][2].wakes_at_s:
            heappop(heap)
        return heap[0][0] if heap else math.inf

    async def _call_all(self) -> None:
        while True:
            with self._sleep:
                if not self._soon:
                    await self._woken.wait()
                # trio runs ready tasks in random order; after this all of them have run.
                await trio.lowlevel.cancel_shielded_checkpoint()
            self._is_awake = True
            if self._woken.is_set():
                self._woken = trio.Event()
            soon, self._soon = self._soon, []
            for fn in soon:
                fn()
            now_s, due = trio.current_time(), []
            while self._next_s() <= now_s:
                due.append(heappop(self._heap)[2])
                due[-1].wakes_at_s = math.inf
            for timers in due:
                timers.call_due(now_s)
            self._is_awake = False
            self._sleep = trio.CancelScope(deadline=self._next_s())


_timer_task: trio.lowlevel.RunVar[TimerTask] = trio.lowlevel.RunVar("bargein_timers")


def start_timer_task() -> None:
    """Start the task that wakes the routers of this trio run, unless it runs already.

    The first router does this by itself; call it earlier if you count tasks or fix their order.
    """
    TimerTask.of_run()
