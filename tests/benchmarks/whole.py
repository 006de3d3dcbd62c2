"""Load 14: what a whole call adds to bare trio and to the engine alone.

A barge-in that interrupts a node in a text call is compared with a cancel scope of bare trio, as in
load 3; and the pieces of a plain answer through a whole call, with answer, history and playout,
with the same pieces through the engine.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from functools import partial
from time import perf_counter_ns
from typing import Any

import trio
import trio.testing

from bargein import App, Call
from bargein.events import (
    AgentResponse,
    AnswerEnded,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.routes import open_router

from ._measure import Row, Size, compare_in_turns
from ._process import logs_to_nowhere
from .interrupt import Node, Pairs, Publish, bare_of, in_turns

PIECES = 1_000
_PIECES = [AgentResponse(content="word ") for _ in range(PIECES)]


class _Reader:
    """A caller who reads."""

    audio = False
    sample_rate_hz = 24_000

    def __init__(self) -> None:
        self.over = trio.Event()

    def send(self, message: Any) -> None:
        """Receive an event."""
        if type(message.event) is AnswerEnded:
            self.over.set()

    def play(self, utterance: int, pcm: bytes) -> None:
        """Nothing is played."""

    def clear(self, utterance: int, reason: str) -> None:
        """Nothing was played."""


class _Talker(Node):
    """Says a word every 20 ms, and records the time when it is interrupted."""

    start, stop = UserStoppedSpeaking, UserStartedSpeaking
    chunk = _PIECES[0]


async def _open_calls(stack: AsyncExitStack, conversations: int) -> Pairs:
    pairs = []
    for _ in range(conversations):
        node = _Talker()

        async def answer(call: Call, node: Node = node) -> None:
            route = call.bridge(name="agent").on(UserStoppedSpeaking)
            route.interrupt_on(UserStartedSpeaking).stream(node.generate).broadcast()

        call = await stack.enter_async_context(App(answer).open_call(_Reader()))
        pairs.append((node, call.router.publish))
    return pairs


async def _say(_: object) -> AsyncGenerator[AgentResponse, None]:
    for piece in _PIECES:
        yield piece


async def _told(publish: Publish, reader: _Reader) -> float:
    """Say all pieces, and return how long each took, in µs."""
    reader.over = trio.Event()
    began = perf_counter_ns()
    publish(UserStoppedSpeaking(), "caller")
    await reader.over.wait()
    took = (perf_counter_ns() - began) / 1000 / PIECES
    await trio.testing.wait_all_tasks_blocked()
    return took


def _pieces(repeats: int) -> tuple[list[float], list[float]]:
    """Say pieces through an engine and through a call in turns."""

    async def answer(call: Call) -> None:
        agent = call.bridge(name="agent")
        agent.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking).stream(_say).broadcast()

    async def main() -> tuple[list[float], list[float]]:
        of_engine, of_call = _Reader(), _Reader()
        samples: tuple[list[float], list[float]] = ([], [])
        async with open_router() as router, App(answer).open_call(of_call) as call:
            router.add_sink(of_engine.send)
            route = router.on(UserStoppedSpeaking, name="agent").interrupt_on(UserStartedSpeaking)
            route.stream(_say).broadcast()
            router.listen(run_ended=lambda run: of_engine.over.set())
            await trio.testing.wait_all_tasks_blocked()
            for _ in range(repeats):
                samples[0].append(await _told(router.publish, of_engine))
                samples[1].append(await _told(call.router.publish, of_call))
        return samples

    return trio.run(main)


def rows(size: Size) -> list[Row]:
    """Run the load."""
    repeats = size.stream_repeats
    with logs_to_nowhere():
        return [
            compare_in_turns(
                "interrupt to finally, one whole call", "us",
                partial(in_turns, bare_of(_Talker), _open_calls, 1, size.interrupts),
                rounds=size.interrupt_rounds, bound=1.6,
            ),
            compare_in_turns(
                "a piece through a whole call, to the engine", "us", partial(_pieces, repeats),
                rounds=size.stream_rounds, bound=1.3,
            ),
        ]  # fmt: skip
