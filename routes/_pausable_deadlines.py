"""Time limits that stand still while a run is paused, or waits for a person."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

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


class RunClocks:
    """All time limits of one run, which stop and resume together."""

    __slots__ = ("_clocks", "_stops")

    def __init__(self) -> None:
        self._clocks: list[Clock] = []
        self._stops = 0

    @property
    def stand_still(self) -> bool:
        """Whether they are stopped, because the run is paused or waits for a person."""
        return self._stops > 0

    def stop(self) -> None:
        """Stop them, until ``resume()`` was called once for each stop."""
        self._stops += 1
        if self._stops == 1:
            for clock in self._clocks:
                clock.stand()

    def resume(self) -> None:
        """Undo one ``stop()``."""
        self._stops -= 1
        if not self._stops:
            for clock in self._clocks:
                clock.resume()

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Stop them within the block."""
        self.stop()
        try:
            yield
        finally:
            self.resume()

    def add(self, clock: Clock) -> None:
        """Stop a clock whenever the others are."""
        self._clocks.append(clock)

    def remove(self, clock: Clock) -> None:
        """Forget a clock; one that was never added is ignored."""
        if clock in self._clocks:
            self._clocks.remove(clock)

    @contextmanager
    def open_deadline(self) -> Iterator[Deadline]:
        """Open a scope with an unarmed deadline, which is one of these clocks."""
        deadline = Deadline(stands=self.stand_still)
        self.add(deadline)
        try:
            with deadline.scope:
                yield deadline
        finally:
            self.remove(deadline)

    @property
    def deadlines(self) -> list[Deadline]:
        """The open deadlines."""
        return [clock for clock in self._clocks if isinstance(clock, Deadline)]
