"""Calls a router's plain functions at set times."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from ._timer_task import TimerTask

Notify = Callable[[Callable[[], None]], None]

_NEVER = (math.inf, lambda: None)


class Timers:
    """The timers of one router: at most one function and time for each key."""

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
            self._nursery.start_soon(_raise, error)
        self._clock.set(self, self._next_s())

    def _next_s(self) -> float:
        next_s = math.inf
        for at_s, _ in self._waiting.values():  # faster than min() for one or two
            if at_s < next_s:
                next_s = at_s
        return next_s


async def _raise(error: BaseException) -> None:
    raise error
