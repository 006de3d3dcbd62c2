"""Load 8: how long a call is held up while an entry of its history is written down.

It is held against appending the same JSON to an open file: what any durable record costs at least.
The thread's checkpoints run beside it as they do in a call.
"""

from __future__ import annotations

import gc
import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from time import perf_counter_ns

import trio

from bridge import History
from bridge._entries import Entry
from bridge.events import ToolCall, ToolResult
from bridge.thread import SqliteThreads
from bridge.thread._records import to_record

from ._measure import Row, Size, quantile, row_of

TURNS_A_BATCH = 10
WRITES_A_TURN = 8


def _turn(history: History, number: int) -> None:
    """Do what a turn with one tool does to a history: eight changes."""
    id = f"call_{number}"
    text = "I have looked it up for you. " * 4
    history.add_user("Would you look up when the next train to Cologne leaves, please?")
    history.set_agent(number, "agent", text[:30], "", "words")
    history.add_tool_call(ToolCall(name="look_up", arguments={"to": "Cologne"}, id=id), turn=number)
    history.mark_tool(id, "began")
    history.mark_tool(id, "committing")
    history.add_tool_result(ToolResult(name="look_up", id=id, content="17:05, platform 4"))
    history.set_agent(number, "agent", text, text[:60], "words")
    history.set_agent(number, "agent", text, text, "words")


async def _timed(write: Callable[[int, Entry], None], turns: int) -> list[float]:
    samples: list[float] = []

    def timed(index: int, entry: Entry) -> None:
        began = perf_counter_ns()
        write(index, entry)
        samples.append((perf_counter_ns() - began) / 1000)

    history = History()
    history.on_change = timed
    for number in range(turns):
        _turn(history, number + 1)
        if not number % TURNS_A_BATCH:
            await trio.sleep(0.001)  # lets a checkpoint that is due begin
    assert len(samples) == turns * WRITES_A_TURN
    return samples


async def _bare(folder: str, turns: int) -> list[float]:
    with (Path(folder) / "bare").open("ab", buffering=0) as file:

        def write(_: int, entry: Entry) -> None:
            file.write(to_record(entry, 0.0).encode() + b"\n")

        return await _timed(write, turns)


async def _ours(folder: str, turns: int) -> list[float]:
    threads = SqliteThreads(Path(folder) / "calls.db")
    async with threads.open_thread("bench") as thread:
        return await _timed(thread.write, turns)


def rows(size: Size) -> list[Row]:
    """Run the load."""
    turns, rounds = size.publish_batches, max(2, size.publish_rounds // 3)
    bare: list[list[float]] = []
    ours: list[list[float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for run, taken in ((_bare, bare), (_ours, ours)):
                gc.collect()
                taken.append(trio.run(run, folder, turns))
    told = chain.from_iterable(ours)
    row = row_of(
        "an entry of a history, to a line of a file", "us", bare, ours, bound=None,
        note=f"longest of {sum(map(len, ours))}: {max(told):.0f} us",
    )  # fmt: skip
    # Of a process that shares its cores, the slowest writes of a hundred are those during which it
    # did not run at all; so the 95th percentile is judged.
    left, right = (quantile(list(chain.from_iterable(side)), 0.95) for side in (bare, ours))
    late = Row(
        name="the same, at its 95th percentile", unit="us", bare=left, bare_p99=None,
        ours=right, ours_p99=None, value=right, bound=1000.0,
    )  # fmt: skip
    return [row, late]
