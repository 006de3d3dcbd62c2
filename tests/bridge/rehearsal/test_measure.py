"""Tests of what is found in a recording."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bargein.client import HeardAudio, ReceivedAudio
from bargein.rehearsal import (
    CallNotes,
    MeasuredCut,
    Metric,
    ReceivedClear,
    RecordedLine,
    Recording,
    ScriptLine,
    agent_has_spoken,
    find_answer,
    find_cut,
    record,
)

Tone = Callable[..., Any]

SAID = RecordedLine(
    ScriptLine("stop", agent_has_spoken(1), interrupts=True), from_s=2.0, until_s=2.8
)


def lay(*heard: tuple[float, int, array[int]], whole: array[int] | None = None) -> Recording:
    """Return a recording of 6 s of what was heard; `whole` is all audio of utterance 1."""
    return record(
        start_s=50.0,
        end_s=56.0,
        spoke=b"",
        spoke_at_s=50.0,
        heard=[
            HeardAudio(50 + at_s, number, bytearray(pcm.tobytes())) for at_s, number, pcm in heard
        ],
        generated={} if whole is None else {1: whole},
    )


def notes(**changes: Any) -> CallNotes:
    """Return notes of a call whose utterance 1 was cut at 2.1 s."""
    entry = {"role": "agent", "answer": 4, "generated": "one two three", "heard": "one two"}
    made = CallNotes(
        clears=[ReceivedClear(2.1, 1)],
        answers={1: 4, 2: 5},
        texts={1: "one two three", 2: "as you wish"},
        history=[{"role": "user", "content": "x"}, entry],
    )
    return replace(made, **changes)


def test_a_cut_is_measured_to_the_last_sound(tone: Tone) -> None:
    """The latency is the time from the caller's first sound to the agent's last."""
    cut = find_cut(SAID, lay((1.0, 1, tone(1.1)), whole=tone(3.0)), notes())
    assert cut.utterance == 1
    assert cut.is_reported
    assert cut.latency_s == pytest.approx(0.1, abs=0.0001)
    assert cut.silent_at_s == pytest.approx(2.1, abs=0.0001)
    assert cut.played_s == pytest.approx(1.1)
    assert cut.dropped_s == pytest.approx(1.9)
    assert (cut.heard, cut.unheard) == ("one two", " three")
    assert (cut.late_s, cut.arrived_late_s) == (0, 0)


def test_silence_at_the_end_of_what_was_played_is_not_heard(tone: Tone) -> None:
    """What counts is the last audible sample, not the last one played."""
    played = tone(0.9) + array("h", bytes(2 * 4_800))
    cut = find_cut(SAID, lay((1.15, 1, played), whole=played), notes())
    assert cut.latency_s == pytest.approx(0.05, abs=0.0001)


def test_an_agent_that_ignores_the_caller_is_measured_to_its_end(tone: Tone) -> None:
    """Without a word of the server the latency reaches to the end of the speech."""
    cut = find_cut(SAID, lay((1.0, 1, tone(3.0)), whole=tone(3.0)), notes(clears=[]))
    assert not cut.is_reported
    assert cut.latency_s == pytest.approx(2.0, abs=0.0001)


def test_a_line_in_silence_cuts_nothing(tone: Tone) -> None:
    """If the agent was silent when the line began there is no utterance and no latency."""
    cut = find_cut(SAID, lay((1.0, 1, tone(0.5))), notes())
    assert cut == MeasuredCut(SAID)


def test_an_older_cut_is_not_this_one(tone: Tone) -> None:
    """A fence from before the line, or below the utterance, does not tell that it was cut."""
    cut = find_cut(
        SAID, lay((1.0, 1, tone(1.1))), notes(clears=[ReceivedClear(1.9, 1), ReceivedClear(2.2, 0)])
    )
    assert not cut.is_reported


def test_audio_of_the_cut_utterance_that_is_played_later_counts_as_late(tone: Tone) -> None:
    """Audio with the number of the cut utterance, behind its cut, is late."""
    cut = find_cut(SAID, lay((1.0, 1, tone(1.1)), (3.0, 1, tone(0.5))), notes())
    assert cut.late_s == pytest.approx(0.5)
    assert cut.latency_s == pytest.approx(0.1, abs=0.0001)


def test_the_rest_of_the_cut_utterance_is_known_under_another_number(tone: Tone) -> None:
    """A voice that goes on with the old answer in the new utterance plays it late."""
    whole = tone(1.1) + tone(1.0, 5)
    cut = find_cut(SAID, lay((1.0, 1, tone(1.1)), (3.0, 2, tone(1.0, 5)), whole=whole), notes())
    assert cut.late_s == pytest.approx(1.0, abs=0.3)


def test_the_same_words_again_are_not_late_audio(tone: Tone) -> None:
    """An answer that says some of the same words may sound the same."""
    whole = tone(1.1) + tone(1.0, 5)
    texts = {1: "a latte. Anything else?", 2: "a tea. Anything else?"}
    recording = lay((1.0, 1, tone(1.1)), (3.0, 2, tone(1.0, 5)), whole=whole)
    assert find_cut(SAID, recording, notes(texts=texts)).late_s == 0


def test_audio_that_arrives_behind_the_cut_is_counted_though_never_played(tone: Tone) -> None:
    """Audio at or below the fence that arrived after it was told came late."""
    received_audio = [
        ReceivedAudio(51.0, 1, 24_000),
        ReceivedAudio(52.2, 1, 2_400),
        ReceivedAudio(52.3, 2, 24_000),
    ]
    cut = find_cut(SAID, lay((1.0, 1, tone(1.1))), notes(received_audio=received_audio))
    assert cut.arrived_late_s == pytest.approx(0.1)
    assert cut.late_s == 0


def test_the_answer_is_the_first_utterance_that_begins_after_the_line(tone: Tone) -> None:
    """The latency of an answer runs from the caller's last sound to the agent's first."""
    recording = lay((1.0, 1, tone(1.1)), (3.4, 2, tone(0.5)), (4.5, 3, tone(0.5)))
    assert find_answer(SAID, recording, notes()).latency_s == pytest.approx(0.6, abs=0.0001)
    assert find_answer(SAID, lay((1.0, 1, tone(1.1))), notes()).latency_s is None


def test_an_answer_has_the_parts_that_were_told(tone: Tone) -> None:
    """What the speech stack measured between the line and its answer is taken apart."""
    told = (
        ("listening.recogniser_s", 0.2),
        ("listening.end_of_turn_s", 0.1),
        ("answer.first_text_s", 0.0),
        ("speaking.first_piece_s", 0.1),
        ("answer.first_audio_s", 0.1),
    )
    metrics = [Metric(53.3, name, value) for name, value in told]
    answer = find_answer(SAID, lay((3.4, 2, tone(0.5))), notes(metrics=metrics))
    assert answer.parts is not None
    assert answer.parts.silence_s == pytest.approx(0.2)
    assert answer.parts.playback_s == pytest.approx(0.1, abs=0.0001)


def test_a_gap_inside_an_utterance_belongs_to_it(tone: Tone) -> None:
    """Where the player waits for more of an utterance, that utterance is being played."""
    recording = lay((1.0, 1, tone(0.5)), (2.0, 1, tone(0.5)), (3.0, 2, tone(0.5)))
    cuts = [
        find_cut(replace(SAID, from_s=at_s), recording, notes())
        for at_s in (0.5, 1.2, 1.8, 2.2, 2.7, 3.2, 3.6)
    ]
    assert [cut.utterance for cut in cuts] == [None, 1, 1, 1, None, 2, None]


def test_an_answer_is_heard_with_all_its_utterances(tone: Tone) -> None:
    """The audio of an answer is that of its utterances, in order, and of no other answer."""
    recording = lay((0.5, 1, tone(0.2)), (1.0, 2, tone(0.3)), (2.0, 3, tone(0.4)))
    cut = find_cut(SAID, recording, notes(answers={1: 4, 2: 5, 3: 4}))
    assert (cut.utterance, cut.played_s) == (3, pytest.approx(0.6))
