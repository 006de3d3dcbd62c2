"""Strategies of one's own: what they are asked, and what becomes of their mistakes."""

from __future__ import annotations

import pytest

from bargein.events import (
    TurnDecided,
    TurnScored,
    UserStoppedSpeaking,
    VoiceHint,
    VoiceStarted,
    VoiceStopped,
)
from bargein.user_turns import (
    ModelEndpointing,
    Sound,
    TurnSettings,
    Verdict,
)

from .conftest import says


class Broken:
    """Fails whatever it is asked."""

    ask_after_s = None

    def begins(self, sound: Sound) -> bool:
        raise RuntimeError("oops")

    def judge(self, sound: Sound, settings: TurnSettings) -> Verdict:
        raise RuntimeError("oops")

    def wait_s(self, pause: object) -> float:
        raise RuntimeError("oops")


def test_a_strategy_that_fails_is_replaced(bench, speaking):
    """The default decides where a strategy raises, and the log says so."""
    settings = TurnSettings(start=Broken(), barge_in=Broken(), endpointing=Broken())
    b = bench(settings=settings).take(VoiceStarted()).take(VoiceStopped()).take(says("a tea"))
    b.wait(1.0)
    assert b.turns == ["start", "a tea", "stop"]
    b.agent(speaking).take(VoiceStarted()).wait(0.5)
    assert b.turns[3:] == ["start"]


class Never:
    """Never knows, and never ends."""

    def judge(self, sound: Sound, settings: TurnSettings) -> Verdict:
        return Verdict("undecided", final=False)

    def wait_s(self, pause: object) -> float:
        return float("nan")


def test_a_strategy_that_never_decides_loses_nothing(bench, speaking, idle):
    """Words about which nothing was decided are kept; a wait without an end is bounded."""
    settings = TurnSettings(barge_in=Never(), endpointing=Never())
    b = bench(speaking, settings).take(VoiceStarted()).wait(0.3).take(VoiceStopped())
    b.take(says("hello there")).agent(idle)
    assert b.turns == ["start", "hello there", "stop"]
    b.take(VoiceStarted()).take(VoiceStopped()).take(says("a tea")).wait(30.0)
    assert b.turns[3:] == ["start", "a tea", "stop"]


class Impatient:
    """Never knows, and wants to be asked again at once."""

    def __init__(self) -> None:
        self.asked = 0

    def judge(self, sound: Sound, settings: TurnSettings) -> Verdict:
        self.asked += 1
        return Verdict("undecided", ask_in_s=0.0)


def test_a_strategy_that_wants_to_be_asked_at_once_is_not_asked_for_ever(bench, speaking):
    """Time passes between two questions, so that one strategy does not stop the event loop."""
    impatient = Impatient()
    bench(speaking, TurnSettings(barge_in=impatient)).take(VoiceStarted()).wait(0.1)
    assert 10 <= impatient.asked <= 25


class Deaf:
    """Takes everything for noise, at once."""

    def judge(self, sound: Sound, settings: TurnSettings) -> Verdict:
        return Verdict("noise", "deaf")


def test_a_voice_that_goes_on_after_its_decision(bench, speaking):
    """The stop of a sound that was decided before it ended belongs to that sound."""
    b = bench(speaking, TurnSettings(barge_in=Deaf())).take(VoiceStarted())
    assert b.decisions == ["noise: deaf"]
    b.settings = TurnSettings()
    b.wait(0.2).take(VoiceStopped()).wait(0.2).take(VoiceStarted())
    assert b.is_held


def test_each_decision_shows_what_it_compared(bench, speaking):
    """Every decision names its rule, and never what was said."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(0.2)
    b.take(says("a secret")).wait(2.0)
    for decided in b.events(TurnDecided):
        assert decided.rule
        assert "secret" not in str(decided.values)
    assert [act.words for _, act in b.acts if getattr(act, "words", "")] == ["a secret", "a secret"]


def test_a_model_of_ones_own_bounds(bench):
    """ModelEndpointing(complete_above=): what counts as complete can be set."""
    b = bench(settings=TurnSettings(endpointing=ModelEndpointing(complete_above=0.95)))
    b.take(VoiceStarted()).take(VoiceStopped()).take(TurnScored(complete=0.9)).take(says("a tea"))
    b.wait(0.6)
    assert b.events(UserStoppedSpeaking) == []
    b.wait(0.05)
    assert b.turns[-1] == "stop"


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("four", "spelling"),
        ("my number is four nine", "spelling"),
        ("i would like a large", "wants a noun"),
        ("I would like a", "unfinished"),
        ("a table for four", "sound"),
        ("I would like a tea.", "sound"),
        ("I would like tea with", "unfinished"),
        ("Give me a tea and milk", "no full stop"),
        ("yes", "answer"),
    ],
)
def test_the_end_of_a_turn_names_what_was_waited_for(text, evidence, bench):
    """The words outweigh a melody that falls, and the decision tells which of them did."""
    b = bench(settings=TurnSettings(endpointing=ModelEndpointing(margin=1.4)))
    b.take(VoiceStarted()).wait(2.0).take(VoiceStopped()).take(TurnScored(complete=0.97))
    b.take(says(text)).wait(2.0)
    [end] = [e for e in b.events(TurnDecided) if e.about == "end"]
    assert end.values["evidence"] == evidence
    waits_s = {"unfinished": 1.5, "sound": 0.32, "answer": 0.32}
    assert end.values["silent_s"] == waits_s.get(evidence, 0.8)


def test_the_usual_pause_of_a_call_is_waited_for(bench):
    """Two pauses of 0.6 s in one turn lengthen the wait of the next, and the decision says so."""
    b = bench(settings=TurnSettings(endpointing=ModelEndpointing(margin=1.2)))
    b.take(VoiceStarted())
    for segment in range(3):
        b.wait(1.0).take(VoiceStopped()).take(says("so", segment=segment)).wait(0.6)
        b.take(VoiceStarted())
    b.wait(1.0).take(VoiceStopped()).take(says("that is all", segment=3)).wait(20.0)
    b.take(VoiceStarted()).wait(2.0).take(VoiceStopped()).take(TurnScored(complete=0.99))
    b.take(says("a tea please")).wait(2.0)
    end = [e for e in b.events(TurnDecided) if e.about == "end"][-1]
    assert (end.values["evidence"], end.values["wait_s"]) == ("pauses of this call", 0.72)


def test_a_verdict_on_a_voice_that_is_held(bench, speaking):
    """A hold ends with the sound that it was for."""
    b = bench(speaking).take(VoiceStarted())
    b.settings = TurnSettings(barge_in=Deaf())
    b.wait(0.1).take(VoiceHint(kind="speech", probability=0.1))
    assert b.core.is_quiet
    assert not b.is_held
