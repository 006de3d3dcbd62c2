"""Load 5: the cost of talking calls, and how many one core carries.

A call has 50 frames of the caller a second, and an agent's voice like a vendor's.
"""

from __future__ import annotations

import gc
import time
from dataclasses import replace

import trio

from ._measure import Row, Size, quantile, row_of
from ._talk import BEGINNING_S, Line, begins_at_s, hold

LATE_S = 0.02
"""A core carries calls if 99 of 100 frames are no later than this, in seconds."""

OPENING_S = 0.008
"""How long opening a call may take on a busy core, in seconds. Delays from opening calls end before
the measurement, which is about talking calls."""

RESOLUTION = 40
"""The relative precision of the number of calls: one part in so many."""

FIRST_STEP, NEXT_STEP = 1.25, 1.06
"""The step factors of searches: the first search knows little, later ones start from its result."""

TRIES = 3
"""How often a number of calls is tried before it counts as too many: other processes can only make
frames later."""

WARM_S = 0.5
BOUND = 1.8
"""A call took 1.5 to 1.6 times the CPU of bare trio, with 20 calls on two shared cores. Bare trio
passes on a piece of 200 ms as it comes; a call sends it in parts, only as far ahead as can be
dropped, and follows each word."""


def talk(side: str, calls: int, seconds: float) -> tuple[float, list[float]]:
    """Run talking calls.

    Args:
        side: ``bare`` or ``ours``.
        calls: How many.
        seconds: How long to measure after a warm-up.

    Returns:
        CPU seconds a second, and how late each frame was, in seconds.
    """

    async def main() -> tuple[float, list[float]]:
        delays_s: list[float] = []
        async with trio.open_nursery() as nursery:
            begin_s = trio.current_time() + 0.05 + calls * OPENING_S
            for number in range(calls):
                first_s = begins_at_s(begin_s, number, calls)
                nursery.start_soon(_hold, side, Line(delays_s), first_s)
            await trio.sleep_until(begin_s + BEGINNING_S)
            gc.collect()  # now, so that its 40 ms do not delay talking calls
            await trio.sleep_until(begin_s + BEGINNING_S + WARM_S)
            delays_s.clear()
            cpu_s, began_s = time.process_time(), trio.current_time()
            await trio.sleep(seconds)
            used_s = time.process_time() - cpu_s
            took_s = trio.current_time() - began_s
            nursery.cancel_scope.cancel()
        return used_s / took_s, delays_s

    thresholds = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*thresholds[:2], 100)  # both sides, as run() of bargein.server does
    try:
        return trio.run(main)
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


async def _hold(side: str, line: Line, first_s: float) -> None:
    await hold(side, line, talks=True, first_s=first_s)


def _cpu(size: Size) -> list[Row]:
    cpu_ms: dict[str, list[list[float]]] = {"bare": [], "ours": []}
    delays_ms: dict[str, list[list[float]]] = {"bare": [], "ours": []}
    for number in range(size.cpu_rounds):
        for side in ("bare", "ours") if number % 2 else ("ours", "bare"):
            used_s, delays_s = talk(side, size.calls, size.cpu_s)
            cpu_ms[side].append([1000 * used_s / size.calls])
            delays_ms[side].append([1000 * delay_s for delay_s in delays_s])
    note = f"{size.calls} calls"
    return [
        row_of(
            "CPU of a talking call", "ms/s", cpu_ms["bare"], cpu_ms["ours"], bound=BOUND, note=note
        ),
        row_of(
            "delay of frames", "ms", delays_ms["bare"], delays_ms["ours"], bound=None,
            note=note,
        ),
    ]  # fmt: skip


def _carries(side: str, calls: int, seconds: float) -> bool:
    _, delays_s = talk(side, calls, seconds)
    return bool(delays_s) and quantile(delays_s, 0.99) <= LATE_S


class _Search:
    """Searches for the most calls that one side carries, one probe at a time."""

    def __init__(self, side: str, first: int, step: float) -> None:
        """Start a search.

        Args:
            side: ``bare`` or ``ours``.
            first: How many calls to try first.
            step: The factor to raise or lower that by until the figure lies between two probes.
        """
        self.side = side
        self.low = 0
        self.high: int | None = None
        self.next = first
        self._step = step
        self._failures = 0

    @property
    def is_over(self) -> bool:
        if self.high is None or not self.low:
            return self.high == 1
        return self.high - self.low <= max(1, self.high // RESOLUTION)

    def probe(self, seconds: float) -> None:
        """Try the next number of calls; retry a failure, because other processes use the CPU."""
        if _carries(self.side, self.next, seconds):
            self.low = self.next
        elif self._failures + 1 < TRIES:
            self._failures += 1
            return
        else:
            self.high = self.next
        self._failures = 0
        if self.high is None:
            self.next = max(self.low + 1, round(self.low * self._step))
        elif not self.low:
            self.next = max(1, min(self.high - 1, round(self.high / self._step)))
        else:
            self.next = (self.low + self.high) // 2


def _capacity(size: Size, cpu: Row) -> Row:
    found: dict[str, list[list[float]]] = {"bare": [], "ours": []}
    assert cpu.bare is not None
    guesses = {side: round(1000 / ms) for side, ms in (("bare", cpu.bare), ("ours", cpu.ours))}
    step = FIRST_STEP
    for _ in range(size.capacity_searches):
        searches = [_Search(side, max(2, calls), step) for side, calls in guesses.items()]
        while not all(search.is_over for search in searches):
            for search in searches:
                if not search.is_over:
                    search.probe(size.probe_s)
        for search in searches:
            found[search.side].append([float(search.low)])
        guesses = {search.side: search.low for search in searches}
        step = NEXT_STEP
    row = row_of("calls that one core carries", "calls", found["ours"], found["bare"], bound=BOUND)
    # More is better here, so the sides are swapped in the ratio and swapped back in the table.
    return replace(row, bare=row.ours, ours=row.bare or 0.0, bare_p99=None, ours_p99=None)


def rows(size: Size) -> list[Row]:
    """Run the load."""
    found = _cpu(size)
    if size.capacity_searches:
        found.append(_capacity(size, found[0]))
    return found
