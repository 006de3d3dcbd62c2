"""Tests of what a latency is made of."""

from __future__ import annotations

import pytest

from bargein.client import HeardAudio
from bargein.rehearsal import (
    CallNotes,
    LatencyParts,
    Metric,
    RecordedLine,
    ScriptLine,
    agent_falls_silent,
    find_answer,
    record,
)

SAID = RecordedLine(ScriptLine("a latte", agent_falls_silent()), from_s=1.0, until_s=2.0)
START_S = 50.0
"""When the recording began, on trio's clock."""

LISTENED = (("listening.recogniser_s", 0.3), ("listening.end_of_turn_s", 0.2))
ANSWERED = (
    ("answer.first_text_s", 0.01),
    ("speaking.first_piece_s", 0.1),
    ("answer.first_audio_s", 0.15),
)


def told(at_s: float, *figures: tuple[str, float]) -> list[Metric]:
    """Return figures told at a moment of the recording."""
    return [Metric(START_S + at_s, name, value) for name, value in figures]


def find_parts(metrics: list[Metric]) -> LatencyParts | None:
    """Return the parts of an answer that is heard from 2.75 s on."""
    heard = HeardAudio(START_S + 2.75, 1, bytearray(b"\x00\x40" * 24_000))
    recording = record(
        start_s=START_S, end_s=START_S + 5, spoke=b"", spoke_at_s=START_S, heard=[heard]
    )
    return find_answer(SAID, recording, CallNotes(metrics=metrics)).parts


def test_a_latency_falls_into_its_parts() -> None:
    """The turn ended 0.5 s after the line, the audio came 0.15 s later and sounded after 0.1."""
    parts = find_parts(told(2.5, *LISTENED) + told(2.65, *ANSWERED))
    assert parts is not None
    assert parts.silence_s == pytest.approx(0.2)
    assert parts.first_clause_s == pytest.approx(0.04)
    assert parts.playback_s == pytest.approx(0.1)
    assert (parts.transcription_s, parts.end_of_turn_s) == (0.3, 0.2)
    assert (parts.first_text_s, parts.first_piece_s) == (0.01, 0.1)


def test_the_slower_of_two_models_counts() -> None:
    """They work at the same time: what remains was silence."""
    listened = (("listening.recogniser_s", 0.1), ("listening.end_of_turn_s", 0.4))
    parts = find_parts(told(2.5, *listened) + told(2.65, *ANSWERED))
    assert parts is not None
    assert parts.silence_s == pytest.approx(0.1)


def test_figures_of_the_next_clause_are_not_of_the_first() -> None:
    """What is told between the first audio and its first sound, or later, changes nothing."""
    metrics = told(2.5, *LISTENED) + told(2.65, *ANSWERED)
    parts = find_parts(metrics)
    later = told(2.7, ("speaking.first_piece_s", 0.7)) + told(9.0, *LISTENED, *ANSWERED)
    assert find_parts(metrics + later) == parts
    assert isinstance(parts, LatencyParts)


def test_of_two_turns_the_one_that_was_answered_counts() -> None:
    """A line taken for two turns has an answer that was cut before it was heard."""
    early = told(1.4, *LISTENED) + told(1.5, *ANSWERED)
    late = told(2.5, *LISTENED) + told(2.65, *ANSWERED)
    assert find_parts(early + late) == find_parts(late)


@pytest.mark.parametrize("left_out", range(5))
def test_a_speech_stack_that_does_not_tell_has_no_parts(left_out: int) -> None:
    """If one figure is missing there are no parts, rather than wrong ones."""
    metrics = told(2.5, *LISTENED) + told(2.65, *ANSWERED)
    del metrics[left_out]
    assert find_parts(metrics) is None


def test_figures_from_before_the_line_do_not_count() -> None:
    """An answer to an earlier line says nothing about this one."""
    metrics = told(0.5, *LISTENED) + told(0.65, *ANSWERED)
    assert find_parts(metrics) is None
