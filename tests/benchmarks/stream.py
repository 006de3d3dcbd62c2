"""Load 2: a thousand chunks through ``.stream().broadcast()`` to a sink.

The node never waits, and its chunks are made beforehand, so that nothing hides the cost of a chunk.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from time import perf_counter_ns
from typing import Any

import trio
import trio.testing

from bargein.routes import open_router

from ._bare import Conversation, Table
from ._events import Chunk, Start, Stop
from ._measure import Row, Size, compare

CHUNKS = 1000
_CHUNKS = [Chunk(number) for number in range(CHUNKS)]


async def _generate(_: object) -> AsyncGenerator[Chunk, None]:
    for chunk in _CHUNKS:
        yield chunk


class _Sink:
    """Counts chunks, and sets an event at the last one."""

    def __init__(self) -> None:
        self.all_came = trio.Event()

    def take(self, message: Any) -> None:
        if message.event.number == CHUNKS - 1:
            self.all_came.set()


async def _timed(publish: Any, sink: _Sink, repeats: int) -> list[float]:
    samples = []
    for _ in range(repeats):
        sink.all_came = trio.Event()
        began = perf_counter_ns()
        publish(Start(), "caller")
        await sink.all_came.wait()
        samples.append((perf_counter_ns() - began) / 1e6)
        await trio.testing.wait_all_tasks_blocked()  # the run itself has to end too
    return samples


def _bare(repeats: int) -> list[float]:
    async def main() -> list[float]:
        table, sink = Table(), _Sink()
        table.on(Chunk, sink.take)
        async with trio.open_nursery() as nursery:
            Conversation(nursery, table, Start, Stop, _generate, waits=False)
            return await _timed(table.publish, sink, repeats)

    return trio.run(main)


def _ours(repeats: int) -> list[float]:
    async def main() -> list[float]:
        sink = _Sink()
        async with open_router() as router:
            router.add_sink(sink.take, Chunk)
            router.on(Start, name="agent").interrupt_on(Stop).stream(_generate).broadcast()
            return await _timed(router.publish, sink, repeats)

    return trio.run(main)


def rows(size: Size) -> list[Row]:
    """Run the load."""
    repeats = size.stream_repeats
    return [
        compare(
            "1,000 chunks through .stream().broadcast()", "ms",
            lambda: _bare(repeats), lambda: _ours(repeats), rounds=size.stream_rounds, bound=2.0,
        )
    ]  # fmt: skip
