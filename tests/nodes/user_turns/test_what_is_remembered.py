"""What turn taking remembers from one sound to the next, and what it forgets."""

from __future__ import annotations

from dataclasses import replace

from bargein.events import (
    TurnScored,
    VoiceStarted,
    VoiceStopped,
)
from bargein.user_turns import (
    FixedEndpointing,
    TurnSettings,
)

from .conftest import says

FIXED = TurnSettings(endpointing=FixedEndpointing(0.5))


def test_a_start_that_comes_after_its_turn_was_decided(bench):
    """The start of a sound whose words and stop have ended a turn begins no other one."""
    b = bench(settings=FIXED).take(says("a tea")).take(VoiceStopped()).wait(0.6)
    assert b.turns == ["start", "a tea", "stop"]
    b.take(VoiceStarted()).wait(2.0)
    assert b.turns == ["start", "a tea", "stop"]
    b.take(VoiceStarted())
    assert b.turns[3:] == ["start"]


def test_a_score_is_one_of_a_pause(bench):
    """What sounded complete does not, once the caller has gone on."""
    b = bench().take(VoiceStarted()).take(VoiceStopped()).take(TurnScored(complete=0.9))
    b.take(VoiceStarted()).wait(0.5).take(VoiceStopped()).take(says("I would like")).wait(0.9)
    assert b.turns == ["start"]


def test_a_score_of_a_doubt_is_that_of_its_turn(bench, speaking):
    """A model that is faster than the recogniser is not asked twice."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped())
    b.take(TurnScored(complete=0.9)).take(says("stop"))
    assert b.turns == ["start", "stop", "stop"]


def test_why_words_are_kept_is_forgotten_with_them(bench, working, speaking, idle):
    """Words that had to wait for the end of the work do not make later ones wait for it."""
    b = bench(replace(working, state="tool"), TurnSettings(mute=("tool",)))
    b.take(VoiceStarted()).take(VoiceStopped()).take(says("not that")).agent(idle)
    assert b.turns == ["start", "not that", "stop"]
    b.agent(replace(speaking, may_be_cut=False)).take(VoiceStarted()).take(VoiceStopped())
    b.take(says("this one")).agent(speaking)
    assert b.turns[3:] == ["start", "this one", "stop"]


def test_a_stop_that_never_comes_while_the_agent_speaks(bench, speaking):
    """An acknowledgement whose words are final is decided though its voice never stops."""
    b = bench(speaking, TurnSettings(min_duration_s=None)).take(VoiceStarted())
    b.take(says("mhm")).wait(9.9)
    assert not b.core.is_quiet
    b.wait(0.7)
    assert b.core.is_quiet
    assert b.turns == []


def test_kept_words_are_told_once_when_their_final_ones_come(bench, speaking, idle):
    """Interim words that were kept are not in the rest that follows, however late it comes."""
    b = bench(speaking, TurnSettings(min_words=3, words_within_s=1.0))
    b.take(VoiceStarted()).wait(0.3).take(VoiceStopped())
    b.take(says("a large", final=False)).wait(2.0)
    assert b.decisions[-1] == "kept: min_words"
    b.take(says("a large latte")).agent(idle).rest()
    assert b.turns == ["start", "a large latte", "stop"]
