"""Calls a router's plain functions at set times, or in the next scheduler step."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

_NEVER = (math.inf, lambda: None)


class Timers:
    """The timers of one router: at most one function and time for each key."""

    def __init__(self, nursery: trio.Nursery, notify: Callable[[Callable[[], None]], None]) -> None:
        """Start without timers.

        Args:
            nursery: Owns the task that calls the functions, until ``close()``; they are called in
                the context of the nursery's own task, whoever set them.
            notify: Calls a function, and lets no ``Exception`` out.
        """
        self._nursery = nursery
        self._notify = notify
        self._waiting: dict[object, tuple[float, Callable[[], None]]] = {}
        self._soon: list[Callable[[], None]] = []
        self._woken = trio.Event()
        self._wakes_at_s = math.inf
        self._sleep = trio.CancelScope()
        # Shielded, because what ends with a cancelled call is given up at set times, too.
        self._life = trio.CancelScope(shield=True)
        nursery.start_soon(self._call_all, name="timers of a router")

    def set(self, key: object, at_s: float, fn: Callable[[], None]) -> None:
        """Call a function at a time; this replaces the timer that the key had."""
        if self._life.cancel_called:
            return
        before = self._waiting.get(key)
        self._waiting[key] = (at_s, fn)
        if at_s < self._wakes_at_s:
            self._wakes_at_s = self._sleep.deadline = at_s
        elif before is not None and before[0] == self._wakes_at_s:
            # Unlike waking the task, moving the deadline takes no scheduler step, so putting off
            # the next timer wakes nobody.
            self._wakes_at_s = self._sleep.deadline = self._next_s()

    def cancel(self, key: object) -> None:
        self._waiting.pop(key, None)  # the task still wakes: usually there are others

    def call_in_next_step(self, fn: Callable[[], None]) -> None:
        """Call a plain function once every task that is ready now has run."""
        self._soon.append(fn)
        self._woken.set()

    def close(self) -> None:
        """Cancel all timers, and accept no more."""
        self._waiting.clear()
        self._life.cancel(reason="the router is closed")

    async def _call_all(self) -> None:
        with self._life:
            while True:
                self._wakes_at_s = self._next_s()
                with trio.CancelScope(deadline=self._wakes_at_s) as self._sleep:
                    if not self._soon:
                        await self._woken.wait()
                    # trio runs ready tasks in random order; after this all of them have run.
                    await trio.lowlevel.cancel_shielded_checkpoint()
                self._woken = trio.Event()
                soon, self._soon = self._soon, []
                for fn in soon:
                    fn()
                self._call_due(trio.current_time())

    def _call_due(self, now_s: float) -> None:
        # A copy, so that context variables that a function sets stay its own.
        context = self._nursery.parent_task.context.copy()
        for key in list(self._waiting):
            at_s, fn = self._waiting.get(key, _NEVER)  # an earlier one may have moved it
            if at_s <= now_s:
                del self._waiting[key]
                context.run(self._notify, fn)

    def _next_s(self) -> float:
        return min((at_s for at_s, _ in self._waiting.values()), default=math.inf)
