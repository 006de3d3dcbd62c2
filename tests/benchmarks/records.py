"""Load 8: how long a call is blocked while an entry of its history is saved.

The baseline is appending the same JSON to an open file, the least that any durable record costs,
and, as a part of load 9, inserting it into a table of SQLite. The conversation's checkpoints run
meanwhile, as in a call.
"""

from __future__ import annotations

import gc
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import closing
from itertools import chain
from pathlib import Path
from time import perf_counter_ns

import trio

from bargein import History
from bargein.conversations import Entry, SqliteConversations, to_record
from bargein.events import ToolCall, ToolResult

from ._measure import Row, Size, quantile, row_of

ANSWERS_A_BATCH = 10
WRITES_AN_ANSWER = 8

_TABLE = """
CREATE TABLE entries (
    thread TEXT, number INTEGER, record TEXT, PRIMARY KEY (thread, number)
) WITHOUT ROWID
"""
_PUT = "INSERT OR REPLACE INTO entries VALUES ('bench', ?, ?)"

Side = Callable[[str, int], Awaitable[list[float]]]
"""Writes the changes of a number of answers into a folder; returns how long each took, in µs."""


def _answer(history: History, number: int) -> None:
    """Change a history as an answer with one tool does: eight changes."""
    id = f"call_{number}"
    text = "I have looked it up for you. " * 4
    history.add_user("Would you look up when the next train to Cologne leaves, please?")
    history.set_agent(number, "agent", text[:30], "", "words")
    history.add_tool_call(
        ToolCall(name="look_up", arguments={"to": "Cologne"}, id=id), answer=number
    )
    history.mark_tool(id, "began")
    history.mark_tool(id, "committing")
    history.add_tool_result(ToolResult(name="look_up", id=id, content="17:05, platform 4"))
    history.set_agent(number, "agent", text, text[:60], "words")
    history.set_agent(number, "agent", text, text, "words")


async def _timed(write: Callable[[int, Entry], None], answers: int) -> list[float]:
    samples: list[float] = []

    def timed(index: int, entry: Entry) -> None:
        began = perf_counter_ns()
        write(index, entry)
        samples.append((perf_counter_ns() - began) / 1000)

    history = History()
    history.on_change = timed
    for number in range(answers):
        _answer(history, number + 1)
        if not number % ANSWERS_A_BATCH:
            await trio.sleep(0.001)  # lets a due checkpoint start
    assert len(samples) == answers * WRITES_AN_ANSWER
    return samples


async def _bare(folder: str, answers: int) -> list[float]:
    with (Path(folder) / "bare").open("ab", buffering=0) as file:

        def write(_: int, entry: Entry) -> None:
            file.write(to_record(entry, 0.0).encode() + b"\n")

        return await _timed(write, answers)


async def _sqlite(folder: str, answers: int) -> list[float]:
    """Insert and commit each record; SQLite runs its checkpoints, as by default."""
    with closing(sqlite3.connect(Path(folder) / "bare.db", isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(_TABLE)

        def write(index: int, entry: Entry) -> None:
            connection.execute(_PUT, (index, to_record(entry, 0.0)))

        return await _timed(write, answers)


async def _ours(folder: str, answers: int) -> list[float]:
    threads = SqliteConversations(Path(folder) / "calls.db")
    async with threads.open_conversation("bench") as thread:
        return await _timed(thread.write, answers)


def _against(bare_side: Side, size: Size) -> tuple[list[list[float]], list[list[float]]]:
    """Return the samples of each round of both sides."""
    answers, rounds = size.publish_batches, max(2, size.publish_rounds // 3)
    bare: list[list[float]] = []
    ours: list[list[float]] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for run, taken in ((bare_side, bare), (_ours, ours)):
                gc.collect()
                taken.append(trio.run(run, folder, answers))
    return bare, ours


def against_sqlite(size: Size, *, bound: float) -> Row:
    """Compare a write with a bare write to SQLite.

    Args:
        size: How much to run.
        bound: The limit, as a multiple of writing the same JSON.
    """
    return row_of(
        "a record, to a commit in bare SQLite", "us", *_against(_sqlite, size), bound=bound
    )


def rows(size: Size) -> list[Row]:
    """Run the load."""
    bare, ours = _against(_bare, size)
    told = chain.from_iterable(ours)
    row = row_of(
        "an entry of a history, to a line of a file", "us", bare, ours, bound=None,
        note=f"longest of {sum(map(len, ours))}: {max(told):.0f} us",
    )  # fmt: skip
    # On shared cores the slowest writes in a hundred are those during which the process did not run
    # at all, so the 95th percentile is judged.
    left, right = (quantile(list(chain.from_iterable(side)), 0.95) for side in (bare, ours))
    late = Row(
        name="the same, at its 95th percentile", unit="us", bare=left, bare_p99=None,
        ours=right, ours_p99=None, value=right, bound=1000.0,
    )  # fmt: skip
    return [row, late]
