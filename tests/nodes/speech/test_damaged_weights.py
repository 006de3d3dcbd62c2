"""An engine stops using weights that are found damaged after it has loaded them."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from bargein.llm import ChatModelError, LocalChat
from bargein.speech import PiperVoice, SileroModel, SmartTurn, WhisperTiny
from bargein.weights import MODELS, ModelStore, WeightsHashError, cache_folder

LIMIT_S = 60.0


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Return what puts a damaged copy of a model into a store of the test's own.

    It returns an awaitable function that has the damage found, which waits until then.
    """
    known = cache_folder()
    found = threading.Event()
    may_check = threading.Event()
    verify = ModelStore.verify

    def late(self: ModelStore, name: str, **options: Any) -> None:
        may_check.wait(LIMIT_S)
        try:
            verify(self, name, **options)
        except WeightsHashError:
            threading.Timer(0.2, found.set).start()  # once the error is kept
            raise

    def damage(name: str) -> Callable[[], Any]:
        [row] = [model for model in MODELS if model.name == name]
        folder = f"{row.name}-{row.wheel.version}"
        shutil.copytree(known / folder, tmp_path / folder)
        largest = max((tmp_path / folder).iterdir(), key=lambda file: file.stat().st_size)
        with largest.open("r+b") as file:
            file.seek(largest.stat().st_size // 2)
            byte = file.read(1)
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte[0] ^ 1]))
        monkeypatch.setenv("BARGEIN_MODELS", str(tmp_path))

        async def find() -> None:
            may_check.set()
            assert await trio.to_thread.run_sync(found.wait, LIMIT_S)

        return find

    monkeypatch.setattr(ModelStore, "verify", late)
    with capture_logs():
        yield damage
    may_check.set()


async def test_a_voice_detector_stops(damaged):
    """SileroModel and the detectors of running calls refuse, and a new one cannot be loaded."""
    find = damaged("silero-vad")
    detector = SileroModel().new_call()
    detector.probability(bytes(1024))
    await find()
    with pytest.raises(WeightsHashError, match="models --fetch silero-vad"):
        detector.probability(bytes(1024))
    with pytest.raises(WeightsHashError):
        detector.probability(bytes(1024))


@pytest.mark.proof
async def test_an_end_of_turn_model_stops(damaged):
    """SmartTurn refuses."""
    find = damaged("smart-turn")
    async with SmartTurn().open() as model:
        await model.probability(bytes(32_000))
        await find()
        with pytest.raises(WeightsHashError):
            await model.probability(bytes(32_000))


@pytest.mark.proof
async def test_a_recogniser_stops(damaged):
    """WhisperTiny refuses."""
    find = damaged("whisper-tiny.en")
    async with WhisperTiny().open() as model:
        await model.transcribe(bytes(32_000))
        await find()
        with pytest.raises(WeightsHashError):
            await model.transcribe(bytes(32_000))


@pytest.mark.proof
async def test_a_voice_stops(damaged, pieces_of):
    """PiperVoice refuses, though its workers have loaded the voice."""
    find = damaged("piper-joe")
    async with PiperVoice().open() as voice:
        assert await pieces_of(voice, "Hello.")
        await find()
        with pytest.raises(WeightsHashError):
            await pieces_of(voice, "Hello.")


@pytest.mark.proof
async def test_a_language_model_stops(damaged):
    """LocalChat refuses with the error of a model, so that another one can take over."""
    find = damaged("smollm2-135m")
    model = LocalChat(max_tokens=3)

    async def ask() -> None:
        async with aclosing(model.stream([{"role": "user", "content": "Hello"}])) as answer:
            async for _ in answer:
                pass

    async with model.open():
        await ask()
        await find()
        with pytest.raises(ChatModelError, match="models --fetch smollm2-135m"):
            await ask()
