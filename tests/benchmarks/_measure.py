"""How everything here is measured: in alternating rounds, and judged by the ratio of each round.

A machine that others use is slower at one moment than at the next.  So the two sides take turns,
each round gives one ratio of its two medians, and the median of these ratios is what is judged.
"""

from __future__ import annotations

import gc
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

Round = Callable[[], list[float]]


@dataclass(frozen=True)
class Size:
    """How much of each load is run."""

    publish_rounds: int
    publish_batches: int
    stream_rounds: int
    stream_repeats: int
    interrupt_rounds: int
    interrupts: int
    conversations: int
    """At once, where one is interrupted among many."""
    leftover_repeats: int
    calls: int
    cpu_rounds: int
    cpu_s: float
    capacity_searches: int
    probe_s: float
    memory_calls: int
    memory_s: float
    resident: bool
    """Whether resident memory is measured beside what is allocated."""
    import_rounds: int
    socket_calls: tuple[int, ...]
    socket_rounds: int
    socket_s: float


FULL = Size(15, 300, 8, 8, 12, 100, 200, 5, 20, 9, 1.5, 3, 1.2, 300, 2.0, True, 7, (20, 60), 3, 5.0)
QUICK = Size(5, 100, 3, 4, 2, 30, 200, 1, 20, 2, 0.3, 0, 0.0, 60, 0.3, False, 1, (), 0, 0.0)
TINY = Size(2, 5, 2, 1, 1, 3, 20, 1, 3, 1, 0.1, 0, 0.0, 10, 0.1, False, 1, (2,), 1, 0.3)


@dataclass(frozen=True)
class Row:
    """One figure: what bare trio needs, what we need, and what is allowed."""

    name: str
    unit: str
    bare: float | None
    """Median; ``None`` where there is nothing to compare with."""
    bare_p99: float | None
    ours: float
    ours_p99: float | None
    value: float
    """What is judged: the ratio, or the figure itself where the bound is absolute."""
    bound: float | None
    """The most that `value` may be; ``None`` for a figure that is only told."""
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the figure is within its bound."""
        return self.bound is None or self.value <= self.bound


def compare(
    name: str, unit: str, bare: Round, ours: Round, *, rounds: int, bound: float | None,
    note: str = "",
) -> Row:  # fmt: skip
    """Run two loads in alternating rounds and return how they compare.

    Args:
        name: What is measured.
        unit: Of the samples that the loads return.
        bare: One round of the load it is held against; returns its samples.
        ours: One round of the load that is judged.
        rounds: How many rounds each side has.
        bound: The most that the median of the rounds' ratios may be; ``None`` judges nothing.
        note: Goes into the table.
    """
    samples: tuple[list[list[float]], list[list[float]]] = ([], [])
    sides = ((bare, samples[0]), (ours, samples[1]))
    for number in range(rounds):
        for run, taken in sides if number % 2 else sides[::-1]:
            gc.collect()
            taken.append(run())
    return row_of(name, unit, *samples, bound=bound, note=note)


def row_of(
    name: str, unit: str, bare: list[list[float]], ours: list[list[float]], *,
    bound: float | None, note: str = "",
) -> Row:  # fmt: skip
    """Make a row of the samples of each round of both sides."""
    ratios = [statistics.median(b) / statistics.median(a) for a, b in zip(bare, ours, strict=True)]
    left, right = list(chain.from_iterable(bare)), list(chain.from_iterable(ours))
    return Row(
        name=name,
        unit=unit,
        bare=statistics.median(left),
        bare_p99=quantile(left, 0.99),
        ours=statistics.median(right),
        ours_p99=quantile(right, 0.99),
        value=statistics.median(ratios),
        bound=bound,
        note=note,
    )


def quantile(samples: Sequence[float], share: float) -> float:
    """Return the smallest sample that at least this share of all samples does not exceed."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
