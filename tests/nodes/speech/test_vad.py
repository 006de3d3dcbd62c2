"""Voice activity on real speech."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from pathlib import Path

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
