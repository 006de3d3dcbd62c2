"""Calls plain functions at their time, all in one task, which begins with the first of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

Notify = Callable[[Callable[[], None]], None]


class Alarms:
    """What is to be called at a time, by whose it is."""

    def __init__(self, nursery: trio.Nursery, notify: Notify) -> None:
        """Wait for the first alarm.

        Args:
            nursery: Owns the task.
            notify: Calls a function; what that raises must not get out of it.
        """
        self._nursery = nursery
        self._notify = notify
        self._waiting: dict[object, tuple[float, Callable[[], None]]] = {}
        self._scope: trio.CancelScope | None = None
        self._looks_at_s = math.inf

    def put(self, key: object, at_s: float, fn: Callable[[], None]) -> None:
        """Call a function at a time, in the place of what was put for the same key."""
        self._waiting[key] = (at_s, fn)
        if self._scope is None:
            self._scope = trio.CancelScope()
            self._nursery.start_soon(self._keep, self._scope, name="alarms of the router")
        if at_s < self._looks_at_s:
            self._looks_at_s = at_s
            self._scope.deadline = at_s  # costs no scheduler step, unlike waking a task

    def take_away(self, key: object) -> None:
        """Forget an alarm, if there is one."""
        self._waiting.pop(key, None)

    async def _keep(self, scope: trio.CancelScope) -> None:
        while True:
            with scope:
                await trio.sleep_forever()
            now_s = trio.current_time()
            for key, (at_s, fn) in list(self._waiting.items()):
                if at_s <= now_s and self._waiting.pop(key, None) is not None:
                    self._notify(fn)
            self._looks_at_s = min((at_s for at_s, _ in self._waiting.values()), default=math.inf)
            self._scope = scope = trio.CancelScope(deadline=self._looks_at_s)
