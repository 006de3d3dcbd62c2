"""Tests of the cough that is made of noise."""

from __future__ import annotations

import numpy as np
import pytest

from bargein.rehearsal import cough, samples

PEAK = 14_000


def pitch_strength(pcm: bytes) -> float:
    """Return how alike the end of the first burst is to itself one pitch period later, 0 to 1."""
    sound = np.asarray(samples(pcm)[3_500:4_800], dtype=float)
    lags = range(70, 110)  # 230 to 145 Hz
    power = float(np.dot(sound, sound))
    return max(float(np.dot(sound[:-lag], sound[lag:])) / power for lag in lags)


@pytest.mark.parametrize(("bursts", "seconds"), [(1, 0.32), (2, 0.77), (3, 1.22)])
def test_it_lasts_as_long_as_its_bursts(bursts: int, seconds: float) -> None:
    """Each burst takes 0.32 s, with breath of 0.13 s between two."""
    assert len(cough(bursts)) / 32_000 == pytest.approx(seconds, abs=0.001)


def test_it_is_loudest_where_it_begins() -> None:
    """The first 50 ms have the peak, and much more power than the rest of the burst."""
    sound = np.asarray(samples(cough(1, voiced=0.0)), dtype=float)
    assert int(np.argmax(np.abs(sound))) < 800
    assert np.max(np.abs(sound)) == PEAK
    assert np.mean(sound[:800] ** 2) > 4 * np.mean(sound[1_600:] ** 2)


def test_it_ends_in_silence() -> None:
    """It fades: its last samples are hardly heard."""
    assert max(abs(value) for value in samples(cough(1))[-20:]) < PEAK / 20


def test_its_voice_has_a_pitch_and_noise_has_none() -> None:
    """A throaty cough ends in something periodic, a dry one does not."""
    assert pitch_strength(cough(1, voiced=1.0)) > 0.5
    assert pitch_strength(cough(1, voiced=0.0)) < 0.4


def test_each_seed_is_another_cough() -> None:
    """The same seed gives the same cough, another one another."""
    assert cough(seed=1) == cough(seed=1)
    assert cough(seed=1) != cough(seed=2)
