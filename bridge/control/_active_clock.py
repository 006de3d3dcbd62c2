"""Counts the seconds that an answer is at work: no pause counts, and no wait for a person."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio

from bargein.routes import Clock, Run


class ActiveClock(Clock):
    """Counts the seconds that a run works; it stands still in a pause, and while the run waits for
    a person."""

    __slots__ = ("_scopes", "_since_s", "_spent_s", "run")

    def __init__(self, run: Run | None = None) -> None:
        """Start to count.

        Args:
            run: The run whose pauses and waits for people do not count; ``None`` counts all time.
        """
        self.run = run
        self._spent_s = 0.0
        self._since_s: float | None = trio.current_time()
        self._scopes: dict[trio.CancelScope, float] = {}
        if run is not None:
            if run.clocks.stand_still:
                self._since_s = None
            run.clocks.add(self)

    @property
    def elapsed_s(self) -> float:
        """How many seconds it has counted."""
        if self._since_s is None:
            return self._spent_s
        return self._spent_s + trio.current_time() - self._since_s

    def stand(self) -> None:
        """Stop counting."""
        self._spent_s = self.elapsed_s
        self._since_s = None
        self._set_deadlines()

    def resume(self) -> None:
        """Continue to count."""
        self._since_s = trio.current_time()
        self._set_deadlines()

    def close(self) -> None:
        """Continue to count, whatever happens to the run."""
        if self.run is not None:
            self.run.clocks.remove(self)
            if self._since_s is None:
                self.resume()

    @contextmanager
    def limit(self, total_s: float) -> Iterator[trio.CancelScope]:
        """Open a scope that is cancelled once the clock has counted this many seconds in total."""
        scope = trio.CancelScope()
        self.arm(scope, total_s)
        try:
            with scope:
                yield scope
        finally:
            del self._scopes[scope]

    def arm(self, scope: trio.CancelScope, total_s: float) -> None:
        """Cancel a scope once the clock has counted this many seconds in total."""
        self._scopes[scope] = total_s
        self._set_deadlines()

    def disarm(self, scope: trio.CancelScope) -> None:
        """Stop limiting a scope."""
        del self._scopes[scope]
        scope.deadline = math.inf

    def _set_deadlines(self) -> None:
        stands = self._since_s is None
        now_s, elapsed_s = trio.current_time(), self.elapsed_s
        for scope, total_s in self._scopes.items():
            scope.deadline = math.inf if stands else now_s + total_s - elapsed_s
