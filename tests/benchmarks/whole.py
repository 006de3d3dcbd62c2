"""Load 14: what a whole call adds to bare trio and to the engine alone.

A barge-in that interrupts a node in a text call is compared with a cancel scope of bare trio, and
the pieces of a plain answer through a whole call, with turn, history and playout, with the same
pieces through the engine.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from time import perf_counter_ns
from typing import Any

import trio
import trio.testing

from bargein import App, Call
from bargein.events import (
    AgentResponse,
    TurnEnded,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.routes import open_router

from ._measure import Row, Size, compare
from ._process import logs_to_nowhere
from .interrupt import Node, bare, timed

PIECES = 1_000
_PIECES = [AgentResponse(content="word ") for _ in range(PIECES)]

INTERRUPT_GOAL = "the goal is 1.4"
PIECE_GOAL = "the goal is 1.2"


class _Reader:
    """A caller who reads."""

    audio = False
    sample_rate_hz = 24_000

    def __init__(self) -> None:
        self.over = trio.Event()

    def send(self, message: Any) -> None:
        """Receive an event."""
        if type(message.event) is TurnEnded:
            self.over.set()

    def play(self, utterance: int, pcm: bytes) -> None:
        """Nothing is played."""

    def clear(self, utterance: int, reason: str) -> None:
        """Nothing was played."""


class _Talker(Node):
    """Says a word every 20 ms, and records the time when it is interrupted."""

    start, stop = UserStoppedSpeaking, UserStartedSpeaking
    chunk = _PIECES[0]


def _interrupts(interrupts: int) -> list[float]:
    async def main() -> list[float]:
        node = _Talker()

        async def answer(call: Call) -> None:
            route = call.bridge(name="agent").on(UserStoppedSpeaking)
            route.interrupt_on(UserStartedSpeaking).stream(node.generate).broadcast()

        async with App(answer).open_call(_Reader()) as call:
            await trio.testing.wait_all_tasks_blocked()
            return await timed([(node, call.router.publish)], interrupts)

    return trio.run(main)


async def _say(_: object) -> AsyncGenerator[AgentResponse, None]:
    for piece in _PIECES:
        yield piece


async def _told(publish: Any, reader: _Reader, repeats: int) -> list[float]:
    samples = []
    for _ in range(repeats):
        reader.over = trio.Event()
        began = perf_counter_ns()
        publish(UserStoppedSpeaking(), "caller")
        await reader.over.wait()
        samples.append((perf_counter_ns() - began) / 1000 / PIECES)
        await trio.testing.wait_all_tasks_blocked()
    return samples


def _pieces_of_engine(repeats: int) -> list[float]:
    async def main() -> list[float]:
        reader = _Reader()
        async with open_router() as router:
            router.add_sink(reader.send)
            route = router.on(UserStoppedSpeaking, name="agent").interrupt_on(UserStartedSpeaking)
            route.stream(_say).broadcast()
            router.listen(run_ended=lambda run: reader.over.set())
            return await _told(router.publish, reader, repeats)

    return trio.run(main)


def _pieces_of_call(repeats: int) -> list[float]:
    async def answer(call: Call) -> None:
        agent = call.bridge(name="agent")
        agent.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking).stream(_say).broadcast()

    async def main() -> list[float]:
        reader = _Reader()
        async with App(answer).open_call(reader) as call:
            await trio.testing.wait_all_tasks_blocked()
            return await _told(call.router.publish, reader, repeats)

    return trio.run(main)


def rows(size: Size) -> list[Row]:
    """Run the load."""
    interrupts, repeats = size.interrupts, size.stream_repeats
    with logs_to_nowhere():
        return [
            compare(
                "interrupt to finally, one whole call", "us",
                lambda: bare(1, interrupts), lambda: _interrupts(interrupts),
                rounds=size.interrupt_rounds, bound=1.75, note=INTERRUPT_GOAL,
            ),
            compare(
                "a piece through a whole call, to the engine", "us",
                lambda: _pieces_of_engine(repeats), lambda: _pieces_of_call(repeats),
                rounds=size.stream_rounds, bound=1.3, note=PIECE_GOAL,
            ),
        ]  # fmt: skip
