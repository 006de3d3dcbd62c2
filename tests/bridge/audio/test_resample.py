"""Resampling."""

from __future__ import annotations

import numpy as np
import pytest

from bargein.speech import Resampler, resample


def tone(rate_hz: int, seconds: float = 1.0) -> bytes:
    """Return a 440 Hz tone as PCM16."""
    times = np.arange(int(rate_hz * seconds)) / rate_hz
    return np.round(16_000 * np.sin(2 * np.pi * 440 * times)).astype("<i2").tobytes()


def same(pcm: bytes, expected: bytes) -> bool:
    """Return whether two sounds agree within 1 % of full volume, their ends left out."""
    a, b = (np.frombuffer(data, "<i2").astype(int)[300:-300] for data in (pcm, expected))
    return bool(np.abs(a - b).max() < 330)


@pytest.mark.parametrize(
    ("from_hz", "to_hz"), [(22_050, 24_000), (24_000, 16_000), (8_000, 16_000)]
)
def test_a_sound_keeps_its_length_and_phase(from_hz: int, to_hz: int) -> None:
    """resample returns the same tone at the other rate, in step with the input."""
    out = resample(tone(from_hz), from_hz, to_hz)
    assert len(out) == 2 * to_hz
    assert same(out, tone(to_hz))


def test_a_stream_is_the_same_as_a_whole() -> None:
    """Resampler returns in pieces, in all, what resample returns at once."""
    pcm = tone(22_050)
    stream = Resampler(22_050, 24_000)
    pieces = [stream.push(pcm[at : at + 882]) for at in range(0, len(pcm), 882)]
    pieces.append(stream.push(b"", last=True))
    out = b"".join(pieces)
    assert len(out) == 48_000
    assert same(out, tone(24_000))
    assert sum(len(piece) > 0 for piece in pieces) > 10


def test_equal_rates_change_nothing() -> None:
    """With equal rates both return what they are given, at once."""
    assert resample(b"\x01\x02", 16_000, 16_000) == b"\x01\x02"
    assert Resampler(16_000, 16_000).push(b"\x01\x02", last=True) == b"\x01\x02"
