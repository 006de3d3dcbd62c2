"""Spaces the flushes of a socket so that they stay within a vendor's limit."""

from __future__ import annotations

import math
from typing import final

import trio

MOST_WAITING = 2
"""How many flushes of a limited line may wait for an answer: for what is said now, and next."""


@final
class FlushLimit:
    """Allows half of a minute's flushes in a burst, and spaces the others evenly.

    So no minute has more flushes than the vendor allows, and no flush waits longer than two of the
    vendor's mean intervals.

    Attributes:
        every_s: The interval between flushes after a burst, in seconds; 0 without a limit.
        most_waiting: How many flushes may wait for an answer; infinity without a limit.
    """

    def __init__(self, most_a_minute: int | None) -> None:
        """Start with the whole burst available.

        Args:
            most_a_minute: The vendor's limit, 4 or more; ``None`` for no limit.
        """
        self.every_s = 0.0 if most_a_minute is None else 120 / most_a_minute
        self.most_waiting = math.inf if most_a_minute is None else MOST_WAITING
        self._at_once = 1 if most_a_minute is None else most_a_minute // 2 - 1
        self._spent_until_s = -math.inf  # when the whole burst is available again

    @property
    def next_at_s(self) -> float:
        """When the next flush may be sent, in seconds of trio's clock."""
        return self._spent_until_s - (self._at_once - 1) * self.every_s

    @property
    def is_scarce(self) -> bool:
        """Whether less than half of the burst is left."""
        left_s = self._spent_until_s - trio.current_time()
        return left_s > self._at_once * self.every_s / 2

    def spend(self) -> None:
        """Count a flush sent now."""
        self._spent_until_s = max(self._spent_until_s, trio.current_time()) + self.every_s
