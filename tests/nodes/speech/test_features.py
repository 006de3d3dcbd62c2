"""Whisper's features in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from bargein.nodes.speech._log_mel import log_mel, samples_of, turn_features


def tone(hertz: float, seconds: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """Return a tone at half volume."""
    times = np.arange(int(16_000 * seconds)) / 16_000
    return np.asarray(0.5 * np.sin(2 * np.pi * hertz * times), np.float32)


def test_samples_are_scaled() -> None:
    """PCM16 becomes floats from -1 to just below 1."""
    pcm = np.array([-32768, 0, 16384, 32767], "<i2").tobytes()
    assert samples_of(pcm) == pytest.approx([-1, 0, 0.5, 32767 / 32768])


def test_shape_is_a_frame_each_10_ms() -> None:
    """log_mel returns 80 bands and a frame for each 160 samples."""
    features = log_mel(tone(440, 2))
    assert features.shape == (80, 200)
    assert features.dtype == np.float32


@pytest.mark.parametrize(
    # Band edges by the Slaney scale: linear to 1 kHz (mel 15), then 27 mels per factor of 6.4;
    # the top, 8 kHz, is mel 45.25, and the bands' centres are 45.25 / 81 apart.
    ("hertz", "band"),
    [(440.0, 11), (1000.0, 26), (4000.0, 62)],
)
def test_a_tone_lies_in_its_band(hertz: float, band: int) -> None:
    """The loudest band of a tone is the one whose centre is nearest to it."""
    loudest = log_mel(tone(hertz, 1))[:, 20:80].mean(axis=1).argmax()
    assert abs(int(loudest) - band) <= 1


def test_range_is_limited() -> None:
    """The quietest value is 8 decades (2 after scaling) below the loudest."""
    features = log_mel(tone(440, 1))
    assert features.max() - features.min() == pytest.approx(2, abs=1e-5)


def test_turn_features_end_with_the_speech() -> None:
    """Short speech stands at the end of the 8 s window, silence before it."""
    features = turn_features(tone(440, 1))
    assert features.shape == (1, 80, 800)
    loudest = features[0].max(axis=0)
    assert loudest[710:790].min() > loudest[:690].max() + 1


def test_turn_features_ignore_loudness_and_the_distant_past() -> None:
    """Volume and what is older than 8 s change nothing; no sound at all is still finite."""
    speech = tone(440, 8)
    quiet = turn_features(speech * np.float32(0.1))
    assert quiet == pytest.approx(turn_features(speech), abs=1e-3)
    assert turn_features(np.concatenate([tone(99, 3), speech])) == pytest.approx(
        turn_features(speech)
    )
    assert np.isfinite(turn_features(speech[:0])).all()
