"""Load 4: how many chunks reach a sink after the interrupt, which must be none.

The baseline is a bus that gives each chunk a task and sends it whatever happened since.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import trio

from bargein import App, Call
from bargein.events import AgentAudio, AgentResponse, UserStartedSpeaking, UserStoppedSpeaking
from bargein.routes import open_router

from ._bare import TaskPerChunkBus
from ._events import Chunk, Start, Stop
from ._measure import Row, Size, quantile
from ._talk import EVERY_S, RATE_HZ, Line

BURST = 200
SENT_FIRST = 10
SLOW_S = 0.002
SETTLE_S = 0.05
"""How long nothing has to come before a run counts as over, in seconds; a slow sink takes 2 ms."""

Generate = Callable[[object], AsyncGenerator[Any, None]]


@dataclass
class _Sink:
    """Counts the chunks whose sending starts after the interrupt."""

    takes_s: float = 0.0
    sent: int = 0
    after: int = 0
    interrupted_s: float | None = None
    last_s: float = 0.0
    ready: trio.Event = field(default_factory=trio.Event)

    async def take(self, _: object) -> None:
        self.count()
        if self.takes_s:
            await trio.sleep(self.takes_s)
        else:
            await trio.lowlevel.checkpoint()

    def count(self) -> None:
        self.sent += 1
        if self.interrupted_s is not None:
            self.after += 1
            self.last_s = perf_counter() - self.interrupted_s
        if self.sent == SENT_FIRST:
            self.ready.set()

    def interrupted(self) -> None:
        """Start counting; called right after the interrupt, in the same step."""
        self.interrupted_s = perf_counter()

    async def settled(self) -> None:
        """Wait until nothing more comes."""
        seen = -1
        while seen != self.sent:
            seen = self.sent
            await trio.sleep(SETTLE_S)


async def _flood(_: object) -> AsyncGenerator[Chunk, None]:
    while True:
        yield Chunk(1)


async def _burst(_: object) -> AsyncGenerator[Chunk, None]:
    for number in range(BURST):
        yield Chunk(number)
    await trio.sleep_forever()


async def _ours(sink: _Sink, generate: Generate) -> None:
    async with open_router() as router:
        if sink.takes_s:
            router.add_sink(sink.take, Chunk, limit=2 * BURST)
        else:
            router.add_sink(lambda _: sink.count(), Chunk)
        router.on(Start, name="agent").interrupt_on(Stop).stream(generate).broadcast()
        router.publish(Start())
        await sink.ready.wait()
        router.publish(Stop())
        sink.interrupted()
        await sink.settled()


async def _bus(sink: _Sink, generate: Generate) -> None:
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()
        bus = TaskPerChunkBus(nursery, sink.take)
        nursery.start_soon(bus.answer, generate(None), scope)
        await sink.ready.wait()
        scope.cancel()
        sink.interrupted()
        await sink.settled()


class _CountingLine(Line):
    """A line that counts what is played."""

    def __init__(self, sink: _Sink) -> None:
        super().__init__()
        self._sink = sink

    def play(self, utterance: int, pcm: bytes) -> None:
        self._sink.count()


async def _call(sink: _Sink, generate: Generate) -> None:
    async def answer(call: Call) -> None:
        route = call.bridge(name="agent").on(UserStoppedSpeaking)
        route.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()

    async with App(answer).open_call(_CountingLine(sink)) as call:
        call.publish(UserStoppedSpeaking())
        await sink.ready.wait()
        call.publish(UserStartedSpeaking())
        sink.interrupted()
        await sink.settled()


async def _audio_burst(_: object) -> AsyncGenerator[Any, None]:
    yield AgentResponse(content="An answer of four seconds.")
    for _ in range(BURST):
        yield AgentAudio(bytes(int(RATE_HZ * EVERY_S) * 2), RATE_HZ, last=False)
    await trio.sleep_forever()


Load = Callable[[_Sink, Generate], Awaitable[None]]


def _leftovers(load: Load, generate: Generate, takes_s: float, repeats: int) -> list[_Sink]:
    async def main() -> _Sink:
        sink = _Sink(takes_s)
        await load(sink, generate)
        return sink

    return [trio.run(main) for _ in range(repeats)]


def _row(
    name: str, bus_generate: Generate, ours: Load, our_generate: Generate, takes_s: float,
    size: Size,
) -> Row:  # fmt: skip
    repeats = size.leftover_repeats
    theirs = _leftovers(_bus, bus_generate, takes_s, repeats)
    found = _leftovers(ours, our_generate, takes_s, repeats)
    bare = [float(sink.after) for sink in theirs]
    after = [float(sink.after) for sink in found]
    longest_ms = 1000 * max(sink.last_s for sink in theirs)
    return Row(
        name=f"chunks after the interrupt: {name}",
        unit="chunks",
        bare=quantile(bare, 0.5),
        bare_p99=quantile(bare, 0.99),
        ours=quantile(after, 0.5),
        ours_p99=quantile(after, 0.99),
        value=max(after),
        bound=0.0,
        note=f"a task per chunk sends for {longest_ms:.0f} ms more",
    )


def rows(size: Size) -> list[Row]:
    """Run the load."""
    return [
        _row("a flood without a pause", _flood, _ours, _flood, 0.0, size),
        _row("200 in one burst", _burst, _ours, _burst, 0.0, size),
        _row("190 behind a sink of 2 ms", _burst, _ours, _burst, SLOW_S, size),
        _row("200 of audio in a call", _burst, _call, _audio_burst, 0.0, size),
    ]
