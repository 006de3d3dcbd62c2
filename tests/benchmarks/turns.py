"""Load 13: the cost of a turn in a long conversation, without rendering the history for the model.

The same call answers a thousand turns. Its node sends the model only the last words, so what is
left is our own work: the turn, its history and its state.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from time import process_time_ns
from typing import Any

import trio
import trio.testing

from bargein import App, Call, ChatNode
from bargein.events import AnswerEnded, UserStoppedSpeaking, UserTranscriptionReceived
from bargein.llm import AnswerPiece, TextDelta, ToolCallRequest
from bargein.tools import tool

from ._measure import Row, Size, row_of
from ._process import logs_to_nowhere

TURNS = 1_000
COMPARED = 100
"""How many turns are compared: the first ones, after a warm-up, and the last ones."""
START = 20

BOUND = 1.3


class _Model:
    """Answers each request in a few words; every fourth turn calls a tool first."""

    def __init__(self) -> None:
        self._requests = 0

    async def stream(self, messages: object, *, tools: object = ()) -> AsyncIterator[AnswerPiece]:
        """Answer a request."""
        self._requests += 1
        if self._requests % 5 == 4:
            yield ToolCallRequest(f"c{self._requests}", "look_up", {}, "{}")
            return
        for word in ("It ", "is ", "so."):
            yield TextDelta(word)


@tool
async def look_up() -> str:
    """Look something up."""
    return "found"


class _Forgetful(ChatNode):
    """Sends its model nothing of the conversation."""

    def messages(self, context: object) -> list[dict[str, Any]]:
        """Return a fixed message."""
        return [{"role": "user", "content": "And now?"}]


class _Reader:
    """A caller who reads."""

    audio = False
    sample_rate_hz = 24_000

    def __init__(self) -> None:
        self.over = trio.Event()

    def send(self, message: Any) -> None:
        """Receive an event."""
        if isinstance(message.event, AnswerEnded):
            self.over.set()

    def play(self, utterance: int, pcm: bytes) -> None:
        """Nothing is played."""

    def clear(self, utterance: int, reason: str) -> None:
        """Nothing was played."""


async def _answer(call: Call) -> None:
    call.converse(_Forgetful(_Model(), tools=[look_up]))


async def _talk(turns: int) -> list[float]:
    """Return the cost of each turn, in µs of CPU."""
    reader, samples = _Reader(), []
    async with App(_answer).open_call(reader) as call:
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(turns):
            reader.over = trio.Event()
            began = process_time_ns()
            call.publish(UserTranscriptionReceived(content="And now?"))
            call.publish(UserStoppedSpeaking())
            await reader.over.wait()
            await trio.testing.wait_all_tasks_blocked()
            samples.append((process_time_ns() - began) / 1000)
    return samples


def rows(size: Size) -> list[Row]:
    """Run the load."""
    turns = TURNS if size.publish_rounds > 2 else 4 * COMPARED  # tiny only checks that it runs
    with logs_to_nowhere():
        rounds = [trio.run(_talk, turns) for _ in range(max(1, size.publish_rounds // 5))]
    first = [samples[START : START + COMPARED] for samples in rounds]
    last = [samples[-COMPARED:] for samples in rounds]
    name = f"a turn, the {turns}th to the first"
    return [row_of(name, "us", first, last, bound=BOUND)]
