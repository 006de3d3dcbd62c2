"""Tests of both sides of a call on one clock."""

from __future__ import annotations

import wave
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bargein.client import HeardAudio
from bargein.rehearsal import RATE_HZ, Recording, record

Tone = Callable[..., Any]


def heard(at_s: float, utterance: int, values: array[int]) -> HeardAudio:
    """Return audio that left the loudspeaker."""
    return HeardAudio(at_s, utterance, bytearray(values.tobytes()))


def recording(tone: Tone) -> Recording:
    """Return 3 s: the caller from 1 s to 1.5 s, utterance 1 from 0.5 s to 1.1 s, in two spans."""
    spoke = array("h", bytes(2 * 16_000)) + tone(0.5, rate_hz=16_000)
    return record(
        start_s=100.0,
        end_s=103.0,
        spoke=spoke.tobytes(),
        spoke_at_s=100.0,
        heard=[heard(100.5, 1, tone(0.2)), heard(100.8, 1, tone(0.3)), heard(102.9, 2, tone(0.5))],
        states=[(99.9, "idle"), (100.5, "speaking")],
        generated={1: tone(0.2) + tone(0.3) + tone(2.5, 2), 2: tone(0.5)},
    )


def test_both_tracks_have_the_length_of_the_call(tone: Tone) -> None:
    """Both tracks last from the start to the end; what goes on after the end is left out."""
    made = recording(tone)
    assert len(made.caller) == len(made.agent) == 3 * RATE_HZ
    assert made.duration_s == 3.0
    assert [(span.utterance, span.start, span.stop) for span in made.spans] == [
        (1, 12_000, 16_800),
        (1, 19_200, 26_400),
        (2, 69_600, 72_000),
    ]


def test_the_agents_track_is_what_was_heard_bit_for_bit(tone: Tone) -> None:
    """The agent's audio lies where it sounded, unchanged, with silence around it."""
    made = recording(tone)
    assert made.agent[12_000:16_800] == tone(0.2)
    assert not any(made.agent[16_800:19_200])
    assert made.of(1) == tone(0.2) + tone(0.3)


def test_the_callers_sound_is_found_to_the_sample(tone: Tone) -> None:
    """What the caller said lies where it sounded, to less than a millisecond."""
    found = recording(tone).caller_sound(0.0, 3.0)
    assert found is not None
    assert abs(found[0] - 1.0) < 0.001
    assert abs(found[1] - 1.5) < 0.001
    assert recording(tone).caller_sound(2.0, 3.0) is None


def test_the_first_and_last_sound_of_an_utterance(tone: Tone) -> None:
    """An utterance is audible from its first span to its last, or to a moment before."""
    made = recording(tone)
    assert made.first_agent_s(1) == 0.5
    assert made.last_agent_s(1) == (26_400 - 1) / RATE_HZ
    assert made.last_agent_s(1, before_s=0.75) == (16_800 - 1) / RATE_HZ
    assert made.last_agent_s(1, before_s=0.4) is None
    assert made.first_agent_s(7) is None


def test_dropped_audio_reaches_to_what_was_heard_next(tone: Tone) -> None:
    """The rest of an utterance begins where it was cut and ends where another one begins."""
    start, rest = recording(tone).dropped(1)
    assert start == 26_400
    assert rest == tone(2.5, 2)[: 69_600 - 26_400]
    assert recording(tone).dropped(2)[1] == array("h")


def test_states_are_on_the_clock_of_the_recording(tone: Tone) -> None:
    """A state that began before the recording began with it."""
    assert recording(tone).states == ((0.0, "idle"), (0.5, "speaking"))


def test_the_wav_has_the_caller_left_and_the_agent_right(tone: Tone, tmp_path: Path) -> None:
    """The file is PCM16 stereo at 24 kHz, each side on its own channel."""
    made = recording(tone)
    made.write_wav(tmp_path / "call.wav")
    with wave.open(str(tmp_path / "call.wav")) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (2, 2, RATE_HZ)
        both = array("h", file.readframes(file.getnframes()))
    assert both[0::2] == made.caller
    assert both[1::2] == made.agent


def test_what_began_before_the_recording_is_cut_off(tone: Tone) -> None:
    """Audio from before the start leaves only its rest."""
    values = tone(0.5)
    made = record(
        start_s=10.0, end_s=10.3, spoke=b"", spoke_at_s=10.0, heard=[heard(9.9, 1, values)]
    )
    assert made.agent == values[2_400:9_600]


def test_what_the_line_carried_is_kept_beside_what_was_said(
    tone: Callable[..., Any], tmp_path: Path
) -> None:
    """With noise on the line the caller's own sound is still found; the file has the noise."""
    spoke = array("h", bytes(2 * 16_000)) + tone(0.5, rate_hz=16_000) + array("h", bytes(16_000))
    noise = tone(2.0, 3, rate_hz=16_000)
    made = record(
        start_s=0.0,
        end_s=2.0,
        spoke=spoke.tobytes(),
        spoke_at_s=0.0,
        heard=[],
        sent=noise.tobytes(),
    )
    found = made.caller_sound(0.0, 2.0)
    assert found is not None
    assert found == pytest.approx((1.0, 1.5), abs=0.01)
    made.write_wav(tmp_path / "call.wav")
    with wave.open(str(tmp_path / "call.wav")) as file:
        left = array("h", file.readframes(2_400))[0::2]
    assert made.sent is not None
    assert left == made.sent[:2_400]
