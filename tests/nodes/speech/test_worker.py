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
    WorkerVoice,
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

NewVoice = Callable[..., WorkerVoice]


@pytest.fixture
def voice_of(tmp_path: Path) -> NewVoice:
    """Return a maker of voices around the engine above."""
    engine = tmp_path / "engine.py"
    engine.write_text(ENGINE)

    def make(**settings: str) -> WorkerVoice:
        return WorkerVoice("tester", engine, settings, start_s=LIMIT_S)

    return make


async def say(voice: WorkerVoice, text: str) -> list[SpeechPiece]:
    """Return all pieces of a text."""
    with trio.fail_after(LIMIT_S):
        return [piece async for piece in voice.synthesize(text)]


async def pid_of(voice: WorkerVoice) -> int:
    """Return the process that says the next text."""
    (piece,) = await say(voice, "pid")
    return int(piece.pcm)


async def test_pieces_and_words_arrive_in_order(voice_of: NewVoice) -> None:
    """synthesize yields the engine's pieces in order, with their words, while the voice is open."""
    voice = voice_of()
    async with voice.open():
        assert voice.sample_rate_hz == 8000
        pieces = await say(voice, "one two")
    assert [piece.pcm for piece in pieces] == [b"one", b"two"]
    assert [(word.text, word.start_s, word.end_s) for word in pieces[1].words] == [("two", 1, 1.5)]
    with pytest.raises(SpeechNotOpenError, match="WorkerVoice is not open"):
        await say(voice, "one")


async def test_errors_are_those_of_speech(voice_of: NewVoice) -> None:
    """A text that is refused, or costs two processes, is an error; the next text is said."""
    voice = voice_of()
    async with voice.open():
        with pytest.raises(SpeechEngineError, match="tester: ValueError: cannot say it"):
            await say(voice, "refuse")
        with pytest.raises(SpeechWorkerError, match=r"tester: .* ended \(exit code 3\)"):
            await say(voice, "die")
        assert [piece.pcm for piece in await say(voice, "next")] == [b"next"]
    with pytest.raises(SpeechEngineError, match=r"tester cannot load: .*no such voice"):
        async with voice_of(broken="yes").open():
            pass


@pytest.mark.proof
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGSTOP there")
async def test_a_voice_that_hangs_mutes_nobody(voice_of: NewVoice) -> None:
    """The first caller hears the text after all, the second within 2 s."""
    voice = voice_of()
    heard: list[bytes] = []
    async with voice.open():
        os.kill(await pid_of(voice), signal.SIGSTOP)
        began_s = trio.current_time()

        async def first() -> None:
            heard.extend([piece.pcm for piece in await say(voice, "one two")])

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            await trio.testing.wait_all_tasks_blocked()
            assert [piece.pcm for piece in await say(voice, "second")] == [b"second"]
            assert trio.current_time() - began_s < 2
        assert heard == [b"one", b"two"]
        assert trio.current_time() - began_s < 6
