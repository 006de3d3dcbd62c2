"""An answer without tools, of a thousand pieces, to a caller who reads.

The model answers at once and never waits, so that nothing hides the cost of a piece.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from time import perf_counter_ns
from typing import Any

import trio
import trio.testing

from bargein import App, Call, ChatNode
from bargein.events import (
    AgentResponse,
    AnswerEnded,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.llm import TextDelta, Usage

from ._bare import Conversation, Envelope, Table
from ._events import Start, Stop
from ._measure import Row, Size, compare

PIECES = 1000
_PIECES = [TextDelta(f"word {number} ") for number in range(PIECES)]
_TEXT = "".join(piece.text for piece in _PIECES)


class _Model:
    """Answers everything with the same thousand pieces."""

    async def stream(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> AsyncGenerator[TextDelta | Usage, None]:
        for piece in _PIECES:
            yield piece
        yield Usage()


class _Reader:
    """The caller's side: counts characters, and sets an event when the answer is over."""

    audio = False
    sample_rate_hz = 24_000

    def __init__(self) -> None:
        self.chars = 0
        self.over = trio.Event()

    def send(self, message: Any) -> None:
        """Receive an event of a call."""
        event = message.event
        if type(event) is AnswerEnded:
            self.over.set()
        elif type(event) is AgentResponse:
            self.chars += len(event.content)

    def take(self, message: Envelope) -> None:
        """Receive a piece of the bare stream."""
        self.chars += len(message.event.text)

    def end(self, _: Envelope) -> None:
        """Receive the end of the bare stream."""
        self.over.set()

    def play(self, utterance: int, pcm: bytes) -> None:
        """Never called: this caller reads."""

    def clear(self, utterance: int, reason: str) -> None:
        """Never called either."""


async def _timed(publish: Any, ask: Sequence[object], reader: _Reader, answers: int) -> list[float]:
    samples = []
    for _ in range(answers):
        reader.over, reader.chars = trio.Event(), 0
        began = perf_counter_ns()
        for event in ask:
            publish(event, "caller")
        await reader.over.wait()
        samples.append((perf_counter_ns() - began) / 1e6)
        assert reader.chars == len(_TEXT)
        await trio.testing.wait_all_tasks_blocked()  # waits for the end of the run itself
    return samples


def _bare(answers: int) -> list[float]:
    async def main() -> list[float]:
        model, reader, table = _Model(), _Reader(), Table()
        table.on(TextDelta, reader.take)
        table.on(Usage, reader.end)
        async with trio.open_nursery() as nursery:
            Conversation(nursery, table, Start, Stop, lambda _: model.stream([]), waits=False)
            return await _timed(table.publish, [Start()], reader, answers)

    return trio.run(main)


async def _plain(_: object) -> AsyncGenerator[AgentResponse, None]:
    async for piece in _Model().stream([]):
        if isinstance(piece, TextDelta):
            yield AgentResponse(content=piece.text)


def _with_plain(call: Call) -> None:
    route = call.bridge(name="agent").on(UserStoppedSpeaking)
    route.interrupt_on(UserStartedSpeaking).stream(_plain).broadcast()


def _with_node(call: Call) -> None:
    node = ChatNode(_Model(), "Be kind.")
    route = call.bridge(node, name="agent").on(UserStoppedSpeaking)
    route.interrupt_on(UserStartedSpeaking).stream(node.generate).broadcast()


def _ours(declare: Callable[[Call], None], answers: int) -> list[float]:
    async def answer(call: Call) -> None:
        declare(call)

    async def main() -> list[float]:
        reader = _Reader()
        ask = [UserTranscriptionReceived(content="And then?"), UserStoppedSpeaking()]
        async with App(answer).open_call(reader) as call:
            await trio.testing.wait_all_tasks_blocked()
            return await _timed(call.router.publish, ask, reader, answers)

    return trio.run(main)


def rows(size: Size, *, bound: float, plain_bound: float) -> list[Row]:
    """Return the figures.

    Args:
        size: How much to run.
        bound: The limit for an answer, as a multiple of the bare stream.
        plain_bound: The limit for an answer, as a multiple of one with a plain function.
    """
    answers = size.stream_repeats
    chat = partial(_ours, _with_node, answers)
    return [
        compare(
            "an answer of 1,000 pieces, to the bare stream", "ms", partial(_bare, answers), chat,
            rounds=size.stream_rounds, bound=bound,
        ),
        compare(
            "the same, to a plain function in a call", "ms", partial(_ours, _with_plain, answers),
            chat, rounds=size.stream_rounds, bound=plain_bound,
        ),
    ]  # fmt: skip
