"""Calls plain functions at their time, all in one task, which begins with the first of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import trio

Notify = Callable[[Callable[[], None]], None]

_NEVER = (math.inf, lambda: None)


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
        before = self._waiting.get(key)
        self._waiting[key] = (at_s, fn)
        scope = self._scope or self.begin()
        # Moving a deadline costs no scheduler step, unlike waking a task; so who puts off what is
        # next wakes nobody.  What is taken away does: mostly there is more, and it moves on.
        if at_s < self._looks_at_s:
            self._looks_at_s = scope.deadline = at_s
        elif before is not None and before[0] == self._looks_at_s:
            self._looks_at_s = scope.deadline = self._next_s()

    def begin(self) -> trio.CancelScope:
        """Start the task, unless it has begun; return the scope in which it waits."""
        if self._scope is None:
            self._scope = self._start()
        return self._scope

    def take_away(self, key: object) -> None:
        """Forget an alarm, if there is one."""
        self._waiting.pop(key, None)

    def _start(self) -> trio.CancelScope:
        scope = trio.CancelScope()
        # A task takes over the context of who starts it: here that is whoever needs an alarm first,
        # such as a run, of which the alarms of others know nothing.
        context = self._nursery.parent_task.context.copy()
        start = partial(self._nursery.start_soon, self._keep, scope, name="alarms of the router")
        context.run(start)
        return scope

    def _next_s(self) -> float:
        return min((at_s for at_s, _ in self._waiting.values()), default=math.inf)

    async def _keep(self, scope: trio.CancelScope) -> None:
        while True:
            with scope:
                await trio.sleep_forever()
            now_s = trio.current_time()
            for key in list(self._waiting):
                at_s, fn = self._waiting.get(key, _NEVER)  # the one before may have put it off
                if at_s <= now_s:
                    del self._waiting[key]
                    self._notify(fn)
            self._looks_at_s = self._next_s()
            self._scope = scope = trio.CancelScope(deadline=self._looks_at_s)
