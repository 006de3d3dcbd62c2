"""Load 6: the memory of an idle call, and of a talking one.

The voice of a talking call is up to two seconds ahead of what is heard, and whoever wants to cut
it keeps that audio: a call of bare trio that does shows how much, and the judged figure is without.

Each figure comes from a process of its own, because a process does not return memory that it has
used. This module is that process: ``memory ours talking 300 rss 2.0`` prints bytes per call.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc

import trio

from ._measure import Row, Size
from ._process import logs_to_nowhere, resident_bytes, run_python
from ._talk import BEGINNING_S, Line, begins_at_s, hold

WARM_CALLS = 20

OPENING_S = 0.002
"""How long a call may take to open on a slow machine, in seconds."""

KB = 1000.0


def rows(size: Size) -> list[Row]:
    """Run the load."""
    meters = ("tracemalloc", "rss") if size.resident else ("tracemalloc",)
    return [
        _row(state, meter, bound, size)
        for state, bound in (("idle", 55.0), ("talking", 100.0))
        for meter in meters
    ]


def _row(state: str, meter: str, bound: float, size: Size) -> Row:
    calls = size.memory_calls if state == "idle" else max(10, size.memory_calls // 4)
    kb = {
        side: measured_bytes(side, state, calls, meter, size.memory_s) / KB
        for side in ("bare", "ours", *(["paced"] if state == "talking" else []))
    }
    ahead_kb = kb["paced"] - kb["bare"] if "paced" in kb else 0.0
    what = "allocated" if meter == "tracemalloc" else "resident"
    return Row(
        name=f"memory of a call, {state}, {what}",
        unit="kB",
        bare=kb["bare"],
        bare_p99=None,
        ours=kb["ours"],
        ours_p99=None,
        value=kb["ours"] - ahead_kb,
        bound=bound,
        note=f"{calls} calls" + (f"; without {ahead_kb:.0f} kB of audio ahead" if ahead_kb else ""),
    )


def measured_bytes(side: str, state: str, calls: int, meter: str, seconds: float) -> float:
    """Return the bytes of a call, measured in a process of its own.

    Args:
        side: ``bare``, which sends audio as it comes; ``paced``, bare trio that keeps it until it
            is heard; or ``ours``.
        state: ``idle`` or ``talking``.
        calls: How many calls there are.
        meter: ``tracemalloc`` or ``rss``.
        seconds: How long they talk.
    """
    asked = (side, state, str(calls), meter, str(seconds))
    printed = run_python("-m", "tests.benchmarks.memory", *asked)
    return float(printed)


def used_bytes(meter: str) -> int:
    """Return the bytes that this process uses, by ``tracemalloc`` or ``rss``."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0] if meter == "tracemalloc" else resident_bytes()


async def _bytes_per_call(side: str, state: str, calls: int, meter: str, seconds: float) -> float:
    talks = state == "talking"
    async with trio.open_nursery() as nursery:
        await _open(nursery, side, WARM_CALLS, talks, seconds)
        before = used_bytes(meter)
        await _open(nursery, side, calls, talks, seconds)
        used = used_bytes(meter) - before
        nursery.cancel_scope.cancel()
    return used / calls


async def _open(nursery: trio.Nursery, side: str, calls: int, talks: bool, seconds: float) -> None:
    begin_s = trio.current_time() + 0.05 + calls * OPENING_S
    for number in range(calls):
        nursery.start_soon(_hold, side, talks, begins_at_s(begin_s, number, calls))
    await trio.sleep_until(begin_s + 0.1 + (BEGINNING_S + seconds if talks else 0.0))


async def _hold(side: str, talks: bool, first_s: float) -> None:
    await hold(side, Line(), talks=talks, first_s=first_s)


if __name__ == "__main__":
    _side, _state, _calls, _meter, _seconds = sys.argv[1:]
    if _meter == "tracemalloc":
        tracemalloc.start()
    with logs_to_nowhere():
        _used = trio.run(_bytes_per_call, _side, _state, int(_calls), _meter, float(_seconds))
    print(_used)
