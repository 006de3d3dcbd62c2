"""Voices in worker processes, for real, around a small engine.

What a process does that dies, hangs or talks nonsense is tested in `tests/nodes/processes`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio

from bargein.speech import (
    SpeechEngineError,
    SpeechNotOpenError,
    SpeechPiece,
    SpeechWorkerError,
    WorkerPool,
    WorkerSettings,
)

ENGINE = """
import os

def load(settings):
    if settings.get("broken"):
        raise ValueError("no such voice")
    return Engine()

class Engine:
    sample_rate_hz = 8000

    def synthesize(self, text, is_cancelled):
        if text == "die":
            yield b"\\x01\\x00", []
            os._exit(3)
        if text == "refuse":
            raise ValueError("cannot say it")
        if text == "pid":
            yield str(os.getpid()).encode(), []
        else:
            for index, word in enumerate(text.split()):
                yield word.encode(), [(word, float(index), index + 0.5)]
"""

LIMIT_S = 20
"""Generous: starting a Python process takes 0.1 s on an idle machine."""

OpenPool = Callable[..., WorkerPool]


@pytest.fixture
def pool_of(tmp_path: Path) -> OpenPool:
    """Return a maker of pools around the engine above."""
    engine = tmp_path / "engine.py"
    engine.write_text(ENGINE)

    def make(**settings: str) -> WorkerPool:
        return WorkerPool(WorkerSettings("tester", engine, settings, start_s=LIMIT_S))

    return make


async def say(pool: WorkerPool, text: str) -> list[SpeechPiece]:
    """Return all pieces of a text."""
    with trio.fail_after(LIMIT_S):
        return [piece async for piece in pool.synthesize(text)]


async def pid_of(pool: WorkerPool) -> int:
    """Return the process that says the next text."""
    (piece,) = await say(pool, "pid")
    return int(piece.pcm)


async def test_pieces_and_words_arrive_in_order(pool_of: OpenPool) -> None:
    """synthesize yields the engine's pieces in order, with their words, while the pool is open."""
    pool = pool_of()
    async with pool.open():
        assert pool.sample_rate_hz == 8000
        pieces = await say(pool, "one two")
    assert [piece.pcm for piece in pieces] == [b"one", b"two"]
    assert [(word.text, word.start_s, word.end_s) for word in pieces[1].words] == [("two", 1, 1.5)]
    with pytest.raises(SpeechNotOpenError, match="tester is not open"):
        await say(pool, "one")


async def test_errors_are_those_of_speech(pool_of: OpenPool) -> None:
    """A text that is refused, or costs two processes, is an error; the next text is said."""
    pool = pool_of()
    async with pool.open():
        with pytest.raises(SpeechEngineError, match="tester: ValueError: cannot say it"):
            await say(pool, "refuse")
        with pytest.raises(SpeechWorkerError, match=r"tester: .* ended \(exit code 3\)"):
            await say(pool, "die")
        assert [piece.pcm for piece in await say(pool, "next")] == [b"next"]
    with pytest.raises(SpeechEngineError, match=r"tester cannot load: .*no such voice"):
        async with pool_of(broken="yes").open():
            pass


@pytest.mark.proof
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGSTOP there")
async def test_a_voice_that_hangs_mutes_nobody(pool_of: OpenPool) -> None:
    """The first caller hears the text after all, the second within 2 s."""
    pool = pool_of()
    heard: list[bytes] = []
    async with pool.open():
        os.kill(await pid_of(pool), signal.SIGSTOP)
        began_s = trio.current_time()

        async def first() -> None:
            heard.extend([piece.pcm for piece in await say(pool, "one two")])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            await trio.testing.wait_all_tasks_blocked()
            assert [piece.pcm for piece in await say(pool, "second")] == [b"second"]
            assert trio.current_time() - began_s < 2
        assert heard == [b"one", b"two"]
        assert trio.current_time() - began_s < 6
