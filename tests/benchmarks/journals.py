"""Load 20: what the journal of a token costs the process, in a Redis and in SQLite.

It is the processor time of this process, from the record to its being kept; that of Redis is not in
it.  The baseline is the journal of one machine.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from time import process_time_ns
from typing import Any

import trio

from bargein.bridge.takeover import open_redis_journals, open_sqlite_journals
from tests.bridge.takeover.redis_server import redis_server

from ._measure import TINY, Row, Size, row_of

CALLS = 100

RATIO_BOUND = 1.5
"""A token in a Redis costs at most so many times what it does in SQLite."""

FLUSH_BOUND_US = 300.0
"""What a flush of a call alone may cost, in microseconds."""

OpenStore = Callable[[], AbstractAsyncContextManager[Any]]


async def _costs(open_store: OpenStore, calls: int, flushes: int) -> list[float]:
    """Return what a token costs in each flush of so many calls, in µs."""
    samples = []
    async with open_store() as store:
        journals = [await store.open(f"call-{number}") for number in range(calls)]
        for number in range(flushes):
            began = process_time_ns()
            for journal in journals:
                journal.write(f"entry/1+{number % 50}", '{"generated": "and a word, "}')
            assert await journals[-1].kept()
            samples.append((process_time_ns() - began) / 1000 / calls)
        for journal in journals:
            await journal.close(forget=True)
    return samples


@asynccontextmanager
async def _in_sqlite() -> AsyncIterator[Any]:
    with tempfile.TemporaryDirectory() as folder:
        async with open_sqlite_journals(Path(folder) / "journals.db") as store:
            yield store


@asynccontextmanager
async def _in_redis() -> AsyncIterator[Any]:
    with tempfile.TemporaryDirectory() as folder, redis_server(Path(folder)) as server:
        async with open_redis_journals(server.url) as store:
            yield store


def rows(size: Size) -> list[Row]:
    """Run the load; a tiny run needs no Redis, and gives nothing."""
    if size is TINY:
        return []
    flushes, rounds = max(10, size.publish_batches // 10), max(2, size.publish_rounds // 3)
    bare, ours, alone = [], [], []
    for _ in range(rounds):
        bare.append(trio.run(_costs, _in_sqlite, CALLS, flushes))
        ours.append(trio.run(_costs, _in_redis, CALLS, flushes))
        alone.append(trio.run(_costs, _in_redis, 1, flushes))
    many = row_of(
        f"a token's journal in a Redis, to SQLite, {CALLS} calls", "us", bare, ours,
        bound=RATIO_BOUND,
    )  # fmt: skip
    flush_us = statistics.median(map(statistics.median, alone))
    one = Row(
        name="a flush of one call to a Redis", unit="us", bare=None, bare_p99=None,
        ours=flush_us, ours_p99=None, value=flush_us, bound=FLUSH_BOUND_US,
    )  # fmt: skip
    return [many, one]
