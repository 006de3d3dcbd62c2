"""Voice activity on real speech."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest

from bargein.speech import EspeakVoice, SileroModel, SileroVAD, TextToSpeech, VoiceActivity
from bargein.weights import WeightsMissingError

Say = Callable[[TextToSpeech, str], Awaitable[bytes]]
FRAME = 1024


def over(vad: SileroVAD, pcm: bytes) -> list[float]:
    """Return the probability of each frame."""
    starts = range(0, len(pcm) - FRAME + 1, FRAME)
    return [vad.probability(pcm[start : start + FRAME]) for start in starts]


async def test_tells_speech_from_silence_and_noise(speech_of: Say) -> None:
    """Speech scores high within a frame or two; silence and noise never do."""
    vad = SileroModel().new_call()
    assert isinstance(vad, VoiceActivity)
    async with EspeakVoice("en-us+m3").open() as voice:
        speech = await speech_of(voice, "Hi, can I get a large latte please?")
    scores = over(vad, speech)
    assert max(scores[:4]) < 0.5
    assert sum(score > 0.5 for score in scores) > 0.6 * len(scores)
    assert max(over(SileroModel().new_call(), bytes(32 * FRAME))) < 0.3
    noise = random.Random(1)
    hiss = b"".join(
        noise.randint(-1500, 1500).to_bytes(2, "little", signed=True) for _ in range(16_000)
    )
    assert max(over(vad, hiss)) < 0.5


async def test_calls_do_not_hear_each_other(speech_of: Say) -> None:
    """Two detectors of one model score the same speech alike, whatever the other hears."""
    model = SileroModel()
    async with EspeakVoice().open() as voice:
        speech = await speech_of(voice, "One large latte.")
    alone = over(model.new_call(), speech)
    first, second = model.new_call(), model.new_call()
    mixed: list[float] = []
    for start in range(0, len(speech) - FRAME + 1, FRAME):
        mixed.append(first.probability(speech[start : start + FRAME]))
        second.probability(bytes(FRAME))
    assert mixed == alone


def test_a_wrong_length_is_an_error() -> None:
    """A frame of another length raises an error that names both lengths."""
    with pytest.raises(ValueError, match="640 bytes, it must have 1024"):
        SileroModel().new_call().probability(bytes(640))


def test_a_missing_model_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without the model the error names the command that fetches it."""
    monkeypatch.setenv("BARGEIN_MODELS", str(tmp_path))
    with pytest.raises(WeightsMissingError, match="--fetch silero-vad"):
        SileroModel()


@pytest.mark.proof
@pytest.mark.parametrize("sound", ["noise", "offset", "music", "speech"])
async def test_after_minutes_of_a_sound_voices_are_found_as_before(
    speech_of: Say, sound: str
) -> None:
    """The state of a detector does not drift: a sentence is found three windows later at most."""
    async with EspeakVoice("en-us+m3").open() as voice:
        spoken = await speech_of(voice, "I would like a large latte, please.")
    sentence = bytes(16 * FRAME) + spoken + bytes(16 * FRAME)
    second, noise = np.arange(16_000) / 16_000, np.random.default_rng(0)
    minute = {
        "noise": noise.normal(0, 600, 60 * 16_000),
        "offset": np.full(60 * 16_000, 3000.0),
        "music": np.tile(1200 * sum(np.sin(2 * np.pi * hz * second) for hz in (220, 277, 330)), 60),
        "speech": np.resize(np.frombuffer(sentence[: len(sentence) & ~1], "<i2"), 60 * 16_000),
    }[sound]
    model = SileroModel()
    fresh = [score > 0.5 for score in over(model.new_call(), sentence)]
    vad = model.new_call()
    for _ in range(3):
        over(vad, minute.astype("<i2").tobytes())
    aged = [score > 0.5 for score in over(vad, sentence)]
    assert aged.index(True) - fresh.index(True) <= 3
    assert sum(aged) > 0.85 * sum(fresh)
