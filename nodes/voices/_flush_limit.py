"""How often a vendor lets a socket be flushed, and when the next flush is due."""

from __future__ import annotations

import math
from typing import final

import trio


@final
class FlushLimit:
    """Half of a minute's flushes may follow each other at once, the others come evenly.

    So no minute has more than the vendor takes, and none of them has to wait for longer than two
    of the vendor's mean intervals.

    Attributes:
        every_s: How far apart flushes are once none may follow at once; 0 without a limit.
    """

    def __init__(self, most_a_minute: int | None) -> None:
        """Begin with all flushes left.

        Args:
            most_a_minute: What the vendor takes, 4 or more; None for any number.
        """
        self.every_s = 0.0 if most_a_minute is None else 120 / most_a_minute
        self._at_once = 1 if most_a_minute is None else most_a_minute // 2 - 1
        self._spent_until_s = -math.inf  # when all flushes are left again

    @property
    def next_at_s(self) -> float:
        """From when on another flush may be sent, by trio's clock."""
        return self._spent_until_s - (self._at_once - 1) * self.every_s

    @property
    def is_scarce(self) -> bool:
        """Whether less than half of the flushes that may follow at once is left."""
        left_s = self._spent_until_s - trio.current_time()
        return left_s > self._at_once * self.every_s / 2

    def spend(self) -> None:
        """Count a flush that is sent now."""
        self._spent_until_s = max(self._spent_until_s, trio.current_time()) + self.every_s
