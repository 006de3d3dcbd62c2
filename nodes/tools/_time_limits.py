"""How long a tool may still run: its timeout, and the time that an interrupt leaves it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager

import trio


class TimeLimits:
    """The deadlines under which a guard waits for its tool.

    Attributes:
        scope: The scope in which the guard waits; it ends at the earlier of the two deadlines.
    """

    def __init__(self, timeout_s: float | None) -> None:
        self.scope = trio.CancelScope()
        self._stop_at_s = math.inf
        self._timeout_s = math.inf if timeout_s is None else timeout_s
        self._timeout_at_s = math.inf
        self._waiting = 0
        self._left_s = math.inf

    def start(self) -> None:
        """Start the timeout now."""
        self._timeout_at_s = trio.current_time() + self._timeout_s
        self._set()

    @contextmanager
    def standing(self) -> Iterator[None]:
        """Suspend the timeout within the block, while the tool waits for a person."""
        if not self._waiting:
            self._left_s = self._timeout_at_s - trio.current_time()
            self._timeout_at_s = math.inf
            self._set()
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._timeout_at_s = trio.current_time() + self._left_s
                self._set()

    def stop_at(self, at_s: float) -> None:
        """Set when to stop the tool, by trio's clock; infinity leaves only the timeout."""
        self._stop_at_s = at_s
        self._set()

    @property
    def is_over(self) -> bool:
        """Whether one of the deadlines has passed while the guard waited."""
        return self.scope.cancelled_caught

    @property
    def is_timeout(self) -> bool:
        """Whether the timeout was the deadline that passed."""
        return self.is_over and self._timeout_at_s <= self._stop_at_s

    def _set(self) -> None:
        self.scope.deadline = min(self._stop_at_s, self._timeout_at_s)
