"""Load 5: what talking calls cost, and how many one core carries.

A call has 50 frames of the caller a second, and a voice of the agent as vendors give it.
"""

from __future__ import annotations

import gc
import time
from dataclasses import replace

import trio

from ._measure import Row, Size, quantile, row_of
from ._talk import BEGINNING_S, Line, begins_at_s, hold

LATE_S = 0.02
"""Calls are carried as long as 99 of 100 frames are no later than this."""

OPENING_S = 0.008
"""What opening a call may take of a busy core.  The figure is of calls that talk: what was late
because calls were being opened is over before anything is measured."""

RESOLUTION = 40
"""To what part of itself the number of calls is found."""

FIRST_STEP, NEXT_STEP = 1.25, 1.06
"""By what factors searches look: the first one knows little, the next ones what it has found."""

TRIES = 3
"""How often a number of calls is tried before it counts as too many: what others take of the core
makes frames late, and nothing makes them early."""

WARM_S = 0.5
BOUND = 1.8
"""A call took 1.5 to 1.6 times the CPU of bare trio, of 20 calls on two cores that others used.
Bare trio hands a piece of 200 ms on as it comes; a call sends it in parts, no further ahead than
can be dropped, and follows each word."""


def talk(side: str, calls: int, seconds: float) -> tuple[float, list[float]]:
    """Run talking calls.

    Args:
        side: ``bare`` or ``ours``.
        calls: How many.
        seconds: For how long they are measured, after a while to settle.

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
            gc.collect()  # of what opening has left, now: its 40 ms are no delay of calls that talk
            await trio.sleep_until(begin_s + BEGINNING_S + WARM_S)
            delays_s.clear()
            cpu_s, began_s = time.process_time(), trio.current_time()
            await trio.sleep(seconds)
            used_s = time.process_time() - cpu_s
            took_s = trio.current_time() - began_s
            nursery.cancel_scope.cancel()
        return used_s / took_s, delays_s

    gc.collect()

    return trio.run(main)


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
    """Looks for the most calls that one side carries, one probe at a time."""

    def __init__(self, side: str, first: int, step: float) -> None:
        """Begin.

        Args:
            side: ``bare`` or ``ours``.
            first: How many calls are tried first.
            step: By what factor that is raised, or lowered, until the figure lies between two.
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
        """Try the next number of calls; one that fails is tried again, as others use the CPU."""
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
    # Here more is better, so the sides change places in the ratio and back in the table.
    return replace(row, bare=row.ours, ours=row.bare or 0.0, bare_p99=None, ours_p99=None)


def rows(size: Size) -> list[Row]:
    """Run the load."""
    found = _cpu(size)
    if size.capacity_searches:
        found.append(_capacity(size, found[0]))
    return found
