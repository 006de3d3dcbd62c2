"""The tests with a real key are there, and left out where it is not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from bargein.speech import TurnOver, VoiceBegan, WordsHeard

from .keys import SENTENCE, WANTED, assert_understood, heard_by, missing, said_by_espeak

HERE = Path(__file__).parent


class Ear:
    """An ear that understands everything, once it has heard two seconds."""

    def __init__(self) -> None:
        self._heard = 0
        self._enough = trio.Event()
        self._facts = [VoiceBegan(), WordsHeard(SENTENCE), TurnOver()]

    @asynccontextmanager
    async def open_stream(self) -> AsyncIterator[Ear]:
        """Hear by itself."""
        yield self

    async def send(self, pcm: bytes) -> None:
        """Count the audio."""
        self._heard += len(pcm)
        if self._heard > 64_000:
            self._enough.set()

    async def receive(self) -> Any:
        """Tell a turn."""
        await self._enough.wait()
        return self._facts.pop(0)


async def test_what_the_tests_do_works_without_a_vendor():
    """A sentence of a voice of ours reaches an ear at its own pace, and its words are looked at."""
    pcm = await said_by_espeak()
    assert 1.5 < len(pcm) / 32_000 < 6
    assert_understood(await heard_by(Ear(), pcm))


def test_each_file_with_a_key_is_there():
    """Each file of this room that wants a key says so, and no other is left out."""
    files = {path.name for path in HERE.glob("test_*.py")}
    assert files - {Path(__file__).name} == set(WANTED)


def test_what_has_no_key_is_left_out():
    """Without keys nothing is asked of any vendor; with one, that vendor's file is collected."""
    assert missing({}) == [*WANTED]
    assert "test_deepgram.py" not in missing({"DEEPGRAM_API_KEY": "k"})
    assert "test_cartesia.py" in missing({"CARTESIA_API_KEY": "k"})
