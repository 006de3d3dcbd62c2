"""Tests of the arithmetic on samples."""

from __future__ import annotations

import math
from array import array
from random import Random

import pytest

from bargein.bridge.rehearsal._sound import (
    AUDIBLE,
    first_audible,
    hiss,
    last_audible,
    loudest,
    resample,
    samples,
    to_pcm,
)
from bargein.rehearsal import joined


def sine(hz: float, rate_hz: int, seconds: float = 1.0) -> array[int]:
    """Return a sine of a third of full scale."""
    steps = range(round(rate_hz * seconds))
    return array("h", (round(10_000 * math.sin(2 * math.pi * hz * n / rate_hz)) for n in steps))


def test_pcm_is_little_endian() -> None:
    """Samples are read and written as little-endian; half a sample at the end is left out."""
    assert list(samples(b"\x01\x00\xff\xff\x00\x80\x07")) == [1, -1, -32768]
    assert to_pcm(array("h", [1, -1, -32768])) == b"\x01\x00\xff\xff\x00\x80"


@pytest.mark.parametrize("at", [0, 479, 480, 1234, 1999])
def test_the_only_sound_is_the_first_and_the_last(at: int) -> None:
    """A single audible sample is found from both ends, wherever it lies."""
    values = array("h", [AUDIBLE - 1] * 2000)
    values[at] = -AUDIBLE
    assert first_audible(values) == last_audible(values) == at


def test_a_stretch_limits_what_is_found() -> None:
    """Sound outside of the stretch does not count, and silence is None."""
    values = array("h", [500, 0, 0, 700, 0, 900])
    assert (first_audible(values, 1, 5), last_audible(values, 1, 5)) == (3, 3)
    assert first_audible(values, 1, 3) is None
    assert last_audible(values, 4, 5) is None
    assert last_audible(values, 0, 99) == 5


def test_hiss_is_there_and_is_not_audible() -> None:
    """A quiet room is not digital silence, and nobody takes it for sound."""
    room = samples(hiss(16_000, Random(1)))
    assert first_audible(room) is None
    assert len(set(room)) > 4


def test_loudest_is_no_less_than_a_whisper() -> None:
    """Near silence is not blown up to fill a lane."""
    assert loudest(array("h", [3, -5])) == 2_000
    assert loudest(array("h", [3_000, -5_000])) == 5_000
    assert loudest(array("h")) == 2_000


@pytest.mark.parametrize(
    ("from_hz", "to_hz"), [(16_000, 24_000), (24_000, 16_000), (22_050, 16_000)]
)
def test_resampling_keeps_a_tone_where_it_was(from_hz: int, to_hz: int) -> None:
    """A tone has the same shape, phase and length at the other rate."""
    found, wanted = resample(sine(440, from_hz), from_hz, to_hz), sine(440, to_hz)
    assert len(found) == len(wanted)
    inner = slice(100, -100)
    assert max(abs(a - b) for a, b in zip(found[inner], wanted[inner], strict=True)) <= 25


def test_resampling_removes_what_the_lower_rate_cannot_hold() -> None:
    """A tone above half of the lower rate does not come back as another."""
    assert max(resample(sine(9_500, 24_000), 24_000, 16_000)[200:-200]) < 100


def test_resampling_to_the_same_rate_copies() -> None:
    """The same rate gives the same samples, in an array of its own."""
    values = array("h", [1, 2, 3])
    same = resample(values, 24_000, 24_000)
    assert same == values
    assert same is not values
    assert resample(array("h"), 16_000, 24_000) == array("h")


def test_sounds_are_joined_with_an_exact_pause() -> None:
    """The silence around each sound is left out, and the pause lies between what is audible."""
    loud, silent = to_pcm(array("h", [5_000] * 160)), bytes(2 * 800)
    made = joined([silent + loud + silent, silent, loud + silent], pause_s=0.4)
    assert made == loud + bytes(2 * 6_400) + loud
    assert joined([], pause_s=1) == b""
