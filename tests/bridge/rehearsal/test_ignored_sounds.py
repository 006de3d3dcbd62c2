"""Tests of what is found of a sound that is meant to leave the agent speaking."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bargein.client import HeardAudio
from bargein.rehearsal import (
    CallNotes,
    Held,
    ReceivedClear,
    RecordedLine,
    Recording,
    ScriptLine,
    TurnDecision,
    agent_has_spoken,
    find_ignored_sound,
    gaps_of,
    record,
)

Tone = Callable[..., Any]

MHM = RecordedLine(ScriptLine("mhm", agent_has_spoken(1), longest_gap_s=0.3), 2.0, 2.5)
NOTES = CallNotes(answers={1: 4}, held=[Held(2.05, 2.4)])


def lay(*heard: tuple[float, int, array[int]], whole: array[int]) -> Recording:
    """Return a recording of 8 s of what was heard; `whole` is all audio of utterance 1."""
    return record(
        start_s=50.0,
        end_s=58.0,
        spoke=b"",
        spoke_at_s=50.0,
        heard=[
            HeardAudio(50 + at_s, number, bytearray(pcm.tobytes())) for at_s, number, pcm in heard
        ],
        generated={1: whole},
    )


def held(tone: Tone, for_s: float) -> Recording:
    """Return a call whose agent speaks from 1 s to 5 s and stands still at 2.1 s."""
    whole = tone(4.0)
    at = round(1.1 * 24_000)
    return lay((1.0, 1, whole[:at]), (2.1 + for_s, 1, whole[at:]), whole=whole)


def test_an_agent_that_goes_on_makes_no_gap(tone: Tone) -> None:
    """Speech that is never held has neither gap nor silence, and nothing of it is lost."""
    whole = tone(4.0)
    ignored = find_ignored_sound(MHM, 8.0, lay((1.0, 1, whole), whole=whole), NOTES)
    assert (ignored.utterance, ignored.is_cut, ignored.gap_s, ignored.gap_from_s) == (
        1,
        False,
        0.0,
        None,
    )
    assert (ignored.dead_air_s, ignored.lost_s, ignored.turns, ignored.model_calls) == (0, 0, 0, 0)


def test_a_held_agent_makes_a_gap_and_loses_nothing(tone: Tone) -> None:
    """The gap is what the player stood still for; the same samples follow it."""
    ignored = find_ignored_sound(MHM, 8.0, held(tone, 0.2), NOTES)
    assert ignored.gap_s == pytest.approx(0.2, abs=0.0001)
    assert ignored.gap_from_s == pytest.approx(2.1, abs=0.0001)
    # The tone swings through nothing at its ends.
    assert ignored.dead_air_s == pytest.approx(0.2, abs=0.001)
    assert ignored.lost_s == 0


def test_the_pauses_of_the_agent_itself_are_dead_air_but_no_gap(tone: Tone) -> None:
    """The caller hears one silence where the agent draws breath and is held in it."""
    before, breath, rest = tone(1.0), array("h", bytes(2 * 9_600)), tone(2.0, 3)
    whole = before + breath + rest
    at = round(1.2 * 24_000)
    recording = lay((1.0, 1, whole[:at]), (2.5, 1, whole[at:]), whole=whole)
    ignored = find_ignored_sound(MHM, 8.0, recording, NOTES)
    assert ignored.gap_s == pytest.approx(0.3, abs=0.0001)
    assert ignored.dead_air_s == pytest.approx(0.7, abs=0.001)


def test_gaps_outside_of_its_time_are_not_its_own(tone: Tone) -> None:
    """A gap before the sound, or after the caller's next line, belongs to others."""
    recording = held(tone, 0.2)
    assert find_ignored_sound(MHM, 2.05, recording, NOTES).gap_s == 0
    late = replace(MHM, from_s=2.15)
    assert find_ignored_sound(late, 8.0, recording, NOTES).gap_s == 0
    assert [gap.length for gap in gaps_of(recording, 1)] == [4_800]


def test_a_player_that_runs_dry_was_not_held(tone: Tone) -> None:
    """Where nobody held the agent the line was to blame: that is told, and is no gap."""
    ignored = find_ignored_sound(MHM, 8.0, held(tone, 0.2), replace(NOTES, held=[Held(2.4, 2.9)]))
    assert (ignored.gap_s, ignored.gap_from_s, ignored.dead_air_s) == (0, None, 0)
    assert ignored.dry_s == pytest.approx(0.2, abs=0.0001)


def test_a_player_that_runs_dry_in_a_hold_is_held_for_its_part(tone: Tone) -> None:
    """Of a gap longer than the hold and its way to the player the rest is the line's."""
    notes = replace(NOTES, held=[Held(2.05, 2.2)])
    ignored = find_ignored_sound(MHM, 8.0, held(tone, 1.0), notes)
    assert ignored.gap_s == pytest.approx(0.25, abs=0.001)
    assert ignored.dry_s == pytest.approx(0.75, abs=0.001)
    assert ignored.dead_air_s == pytest.approx(0.25, abs=0.002)


def test_the_rounding_of_clocks_is_no_gap(tone: Tone) -> None:
    """Two spans a sample apart are one."""
    assert gaps_of(held(tone, 0.0001), 1) == []


@pytest.mark.parametrize(("skipped", "lost"), [(0, 0.0), (2_400, 2.8), (-2_400, 3.0)])
def test_left_out_and_repeated_audio_is_lost(tone: Tone, skipped: int, lost: float) -> None:
    """Audio that is left out or comes twice is noticed from the sample on at which it does."""
    whole = tone(4.0)
    heard = whole[:24_000] + whole[24_000 + skipped :]
    ignored = find_ignored_sound(MHM, 8.0, lay((1.0, 1, heard), whole=whole), NOTES)
    assert ignored.lost_s == pytest.approx(lost, abs=0.11)


def test_what_was_not_played_yet_is_not_lost(tone: Tone) -> None:
    """An utterance that goes on when the call ends was heard in part, from its beginning."""
    whole = tone(4.0)
    ignored = find_ignored_sound(MHM, 8.0, lay((1.0, 1, whole[:30_000]), whole=whole), NOTES)
    assert ignored.lost_s == 0


def test_a_cut_is_told(tone: Tone) -> None:
    """An agent that is cut did not go on, whatever its gaps."""
    whole = tone(4.0)
    recording = lay((1.0, 1, whole[:26_400]), whole=whole)
    notes = replace(NOTES, clears=[ReceivedClear(2.2, 1)])
    assert find_ignored_sound(MHM, 8.0, recording, notes).is_cut
    assert not find_ignored_sound(MHM, 2.1, recording, notes).is_cut


def test_an_agent_that_was_silent_is_told(tone: Tone) -> None:
    """A sound in silence has no utterance; turns and model calls count all the same."""
    notes = replace(NOTES, generations=[(3.0, 5)], transcripts=[(2.9, "mhm")])
    ignored = find_ignored_sound(MHM, 8.0, lay(whole=tone(1.0)), notes)
    assert (ignored.utterance, ignored.turns, ignored.model_calls) == (None, 1, 1)


def test_answers_to_it_are_counted(tone: Tone) -> None:
    """A generation of another answer, before the caller's next line, comes of the sound."""
    notes = replace(NOTES, generations=[(1.5, 3), (2.6, 4), (2.8, 5), (6.5, 6)])
    assert find_ignored_sound(MHM, 6.0, held(tone, 0.2), notes).model_calls == 1


def test_decisions_about_it_are_kept(tone: Tone) -> None:
    """What is decided of a barge-in between the sound and three seconds later is about it."""
    first, late, other = (
        TurnDecision(2.3, "barge_in", "released", "hint"),
        TurnDecision(5.2, "barge_in", "interruption", "min_words"),
        TurnDecision(2.4, "end", "complete", "model"),
    )
    still = TurnDecision(2.2, "barge_in", "held", "voice")
    notes = replace(NOTES, decisions=[still, first, other, late])
    ignored = find_ignored_sound(MHM, 8.0, held(tone, 0.2), notes)
    assert ignored.decisions == (first,)
