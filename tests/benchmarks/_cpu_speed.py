"""How fast a CPU is while something is measured, so that figures of two processes compare."""

from __future__ import annotations

import time

import trio

SAMPLE_EVERY_S = 0.05
SAMPLE_STEPS = 1_000
"""How often the speed of the CPU is measured, in seconds, and with how many steps of a loop: some
0.1 ms."""


class CPUSpeed:
    """How fast the CPU is while something runs: other machines on a host change it by half.

    Attributes:
        used_s: The CPU time that this has taken since the last ``loop_s()``, in seconds.
        count: How often it has timed its loop since.
    """

    def __init__(self) -> None:
        self.used_s = 0.0
        self.count = 0

    async def sample(self) -> None:
        """Time a loop again and again, for some thousandths of the time of a core."""
        while True:
            await trio.sleep(SAMPLE_EVERY_S)
            self._time_loop()

    def _time_loop(self) -> None:
        begin_s = time.process_time()
        total = 0
        for number in range(SAMPLE_STEPS):
            total += number * number % 7
        self.used_s += time.process_time() - begin_s
        self.count += 1

    def loop_s(self) -> float:
        """Return how long the loop took on average, in seconds, and start again."""
        if not self.count:
            self._time_loop()
        loop_s = self.used_s / self.count
        self.used_s, self.count = 0.0, 0
        return loop_s
