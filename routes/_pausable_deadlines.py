"""Time limits that stand still while a run is paused, or waits for a person."""

from __future__ import annotations

import math

import trio


class Clock:
    """A time limit that stands still while its run is paused."""

    __slots__ = ()

    def stand(self) -> None:
        """Stop counting."""

    def resume(self) -> None:
        """Resume counting the time that is left."""


class Deadline(Clock):
    """The deadline of a scope that stays open: armed for each step, disarmed between steps."""

    __slots__ = ("_is_stopped", "_left_s", "scope")

    def __init__(self, limit_s: float = math.inf, *, stands: bool) -> None:
        self.scope = trio.CancelScope()
        self._is_stopped = stands
        self.arm(limit_s)

    def arm(self, limit_s: float) -> None:
        """Set the deadline to seconds from now; infinity disarms it."""
        self._left_s = limit_s
        if not self._is_stopped:
            self.resume()

    def stand(self) -> None:
        """Stop counting."""
        self._left_s = self.scope.deadline - trio.current_time()
        self._is_stopped = True
        self.scope.deadline = math.inf

    def resume(self) -> None:
        """Resume counting the time that is left."""
        self._is_stopped = False
        self.scope.deadline = trio.current_time() + self._left_s
