"""Calls the plain functions of a router at their time."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from ._alarm_clock import AlarmClock

Notify = Callable[[Callable[[], None]], None]

_NEVER = (math.inf, lambda: None)


class Alarms:
    """What is to be called at a time, by whose it is."""

    __slots__ = ("_clock", "_is_closed", "_notify", "_nursery", "_waiting", "wakes_at_s")

    def __init__(self, nursery: trio.Nursery, notify: Notify) -> None:
        """Begin with none.

        Args:
            nursery: Gets what ends more than the function that raised it; functions are called in
                the context of its owner, whoever put them.
            notify: Calls a function; no ``Exception`` must get out of it.
        """
        self.wakes_at_s = math.inf
        self._clock = AlarmClock.of_run()
        self._nursery = nursery
        self._notify = notify
        self._waiting: dict[object, tuple[float, Callable[[], None]]] = {}
        self._is_closed = False

    def put(self, key: object, at_s: float, fn: Callable[[], None]) -> None:
        """Call a function at a time, in the place of what was put for the same key."""
        if self._is_closed:
            return
        before = self._waiting.get(key)
        self._waiting[key] = (at_s, fn)
        if at_s < self.wakes_at_s:
            self._clock.set(self, at_s)
        elif before is not None and before[0] == self.wakes_at_s:
            self._clock.set(self, self._next_s())

    def take_away(self, key: object) -> None:
        """Forget an alarm, if there is one."""
        self._waiting.pop(key, None)  # the clock may wake it for nothing: mostly there is more

    def close(self) -> None:
        """Forget all alarms, and take no more."""
        self._is_closed = True
        self._waiting.clear()
        self._clock.forget(self)

    def wake(self, now_s: float) -> None:
        """Call what is due."""
        # A copy: what a function sets there is not for others to see.
        context = self._nursery.parent_task.context.copy()
        try:
            for key in list(self._waiting):
                at_s, fn = self._waiting.get(key, _NEVER)  # the one before may have put it off
                if at_s <= now_s:
                    del self._waiting[key]
                    context.run(self._notify, fn)
        except BaseException as error:  # noqa: BLE001, ASYNC103 - given to its owner
            self._nursery.start_soon(_raise, error)
        self._clock.set(self, self._next_s())

    def _next_s(self) -> float:
        next_s = math.inf
        for at_s, _ in self._waiting.values():  # quicker than min(): there are one or two
            if at_s < next_s:
                next_s = at_s
        return next_s


async def _raise(error: BaseException) -> None:
    raise error
