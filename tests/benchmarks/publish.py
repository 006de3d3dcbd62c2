"""Load 1: the cost of publishing an event to a route whose stages do not wait.

Each sample is the mean of a batch, since a single publication hardly takes longer than reading the
clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import make_dataclass
from time import perf_counter_ns
from typing import Any

import trio

from bargein import App, Call
from bargein.events import UserAudio
from bargein.routes import open_router

from ._bare import Table
from ._events import Chunk
from ._measure import Row, Size, compare
from ._talk import Line

BATCH = 20

HUNDRED = [
    make_dataclass(f"Probe{number}", [("number", int)], frozen=True, slots=True)
    for number in range(100)
]

Handler = Callable[[Any], None]


def _take(message: Any) -> None:
    """Read the event, like a cheap handler."""
    _ = message.event.number


def _hear(message: Any) -> None:
    _ = message.event.pcm


def _timed(publish: Callable[[Any, str], Any], event: Any, batches: int) -> list[float]:
    samples = []
    for _ in range(batches):
        began = perf_counter_ns()
        for _ in range(BATCH):
            publish(event, "caller")
        samples.append((perf_counter_ns() - began) / BATCH / 1000)
    return samples


def _table(classes: list[type], event: Any, batches: int) -> list[float]:
    async def main() -> list[float]:
        table = Table()
        for cls in classes:
            table.on(cls, _take)
        return _timed(table.publish, event, batches)

    return trio.run(main)


def _routes(classes: list[type], event: Any, batches: int) -> list[float]:
    async def main() -> list[float]:
        async with open_router() as router:
            for cls in classes:
                router.on(cls, name="node").map(_take)
            router.publish(event, "caller")
            return _timed(router.publish, event, batches)

    return trio.run(main)


def _table_of_filters(event: Any, batches: int) -> list[float]:
    def guarded(number: int) -> Handler:
        def take_if_meant(message: Any) -> None:
            if message.event.number == number:
                _take(message)

        return take_if_meant

    async def main() -> list[float]:
        table = Table()
        for number in range(100):
            table.on(Chunk, guarded(number))
        return _timed(table.publish, event, batches)

    return trio.run(main)


def _routes_of_filters(event: Any, batches: int) -> list[float]:
    async def main() -> list[float]:
        async with open_router() as router:
            for number in range(100):
                router.on(Chunk, name="node", number=number).map(_take)
            router.publish(event, "caller")
            return _timed(router.publish, event, batches)

    return trio.run(main)


def _table_with_line(event: Any, batches: int) -> list[float]:
    async def main() -> list[float]:
        table, line = Table(), Line()
        table.on(UserAudio, _hear)
        table.on(UserAudio, line.send)
        return _timed(table.publish, event, batches)

    return trio.run(main)


def _call(event: Any, batches: int) -> list[float]:
    async def answer(call: Call) -> None:
        call.bridge(name="node").on(UserAudio).map(_hear)

    async def main() -> list[float]:
        async with App(answer).open_call(Line()) as call:
            call.publish(event)
            return _timed(lambda event, source: call.publish(event, source=source), event, batches)

    return trio.run(main)


def rows(size: Size) -> list[Row]:
    """Run the load."""
    rounds, batches = size.publish_rounds, size.publish_batches
    first, fiftieth = HUNDRED[0](1), HUNDRED[50](1)
    return [
        compare(
            "publish to one sync route, to a table call", "us",
            lambda: _table(HUNDRED[:1], first, batches),
            lambda: _routes(HUNDRED[:1], first, batches), rounds=rounds, bound=4.0,
        ),
        compare(
            "publish to one of a hundred, to a table call", "us",
            lambda: _table(HUNDRED, fiftieth, batches),
            lambda: _routes(HUNDRED, fiftieth, batches), rounds=rounds, bound=4.0,
        ),
        compare(
            "publish to one of a hundred, to one", "us",
            lambda: _routes(HUNDRED[:1], first, batches),
            lambda: _routes(HUNDRED, fiftieth, batches), rounds=rounds, bound=1.2,
        ),
        compare(
            "a frame through Call.publish to one route", "us",
            lambda: _table_with_line(UserAudio(bytes(640)), batches),
            lambda: _call(UserAudio(bytes(640)), batches), rounds=rounds, bound=None,
        ),
        compare(
            "a hundred field filters on one class", "us",
            lambda: _table_of_filters(Chunk(50), batches // 5 or 1),
            lambda: _routes_of_filters(Chunk(50), batches // 5 or 1),
            rounds=max(2, rounds // 3), bound=None,
        ),
    ]  # fmt: skip
