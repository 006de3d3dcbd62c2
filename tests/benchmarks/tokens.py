"""Load 10: the cost of a token in a saved text call, for long and short answers.

Each piece of an answer is written to the operating system before it is published. If the whole
answer were written for each token, one of ten thousand tokens would cost a hundred times as much
per token as one of a hundred. So the cost in a long answer is compared with that in short ones with
the same number of tokens in all. Reading the files of a killed process is compared in the same way.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from time import process_time_ns

import trio

from bargein import App, Call, History
from bargein.conversations import SqliteConversations
from bargein.events import AgentResponse, UserStartedSpeaking, UserStoppedSpeaking

from ._measure import Row, Size, compare

TOKENS = 10_000
SHORT = 100
READ_SHORT = 1_000
TOKEN = "word "

WRITE_BOUND = 1.5
"""A token of the long answer took 0.9 to 1.1 times as long as one of the short ones, on two shared
cores. With the whole answer written for each token it took 6 times as long."""

READ_BOUND = 1.5
"""A token took 0.6 to 0.75 times as long, because opening the file counts more for a short
answer."""


class _Reader:
    """A caller who reads."""

    audio = False
    sample_rate_hz = 24_000

    def send(self, message: object) -> None:
        """Receive an event."""

    def play(self, utterance: int, pcm: bytes) -> None:
        """Nothing is played."""

    def clear(self, utterance: int, reason: str) -> None:
        """Nothing was played."""


async def _answers(folder: str, tokens: int) -> list[float]:
    """Return the cost of a token in each answer of a call, in µs of CPU."""
    samples: list[float] = []

    async def generate(_: object) -> AsyncIterator[AgentResponse]:
        began = process_time_ns()
        for _ in range(tokens):
            yield AgentResponse(content=TOKEN)
        samples.append((process_time_ns() - began) / 1000 / tokens)

    async def answer(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        chain.stream(generate).broadcast()

    app = App(answer, conversations=SqliteConversations(Path(folder) / "calls.db"))
    async with app.open_call(_Reader(), conversation="bench") as call:
        await trio.testing.wait_all_tasks_blocked()
        for _ in range(TOKENS // tokens):
            call.publish(UserStoppedSpeaking())
            await call.answers.silence()
    return samples


def _written(tokens: int) -> list[float]:
    with tempfile.TemporaryDirectory() as folder:
        return trio.run(_answers, folder, tokens)


async def _leave(folder: Path, tokens: int) -> None:
    """Leave the files of a process that is killed after the last token of an answer."""
    live = folder / "live"
    live.mkdir()
    async with SqliteConversations(live / "calls.db").open_conversation("bench") as conversation:
        history = History()
        history.on_change = conversation.write
        for number in range(tokens):
            text = TOKEN * (number + 1)
            history.set_agent(1, "agent", text, text, "text")
        for file in live.glob("calls.db*"):
            if file.is_file():
                shutil.copy(file, folder / file.name)


async def _open(path: Path, tokens: int) -> float:
    began = process_time_ns()
    async with SqliteConversations(path).open_conversation("bench") as conversation:
        took = process_time_ns() - began
        (entry,) = conversation.entries
    assert entry.role == "agent"
    assert len(entry.generated) == tokens * len(TOKEN)
    return took / 1000 / tokens


def _read(tokens: int) -> list[float]:
    with tempfile.TemporaryDirectory() as name:
        trio.run(_leave, Path(name), tokens)
        return [trio.run(_open, Path(name) / "calls.db", tokens)]


def rows(size: Size) -> list[Row]:
    """Run the load."""
    rounds = max(1, size.publish_rounds // 3)
    return [
        compare(
            f"a saved token of {TOKENS}, to one of {SHORT}", "us",
            lambda: _written(SHORT), lambda: _written(TOKENS), rounds=rounds, bound=WRITE_BOUND,
        ),
        compare(
            f"one read again of {TOKENS}, to one of {READ_SHORT}", "us",
            lambda: _read(READ_SHORT), lambda: _read(TOKENS), rounds=rounds, bound=READ_BOUND,
        ),
    ]  # fmt: skip
