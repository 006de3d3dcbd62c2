"""What becomes of voices that may be babble while the agent speaks, without a call."""

from __future__ import annotations

import math

import pytest

from bargein.events import (
    VoiceHint,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)
from bargein.nodes.user_turns._turn_taking_state import HoldSpeech

BABBLE = VoiceStarted(distant=0.9)


def test_a_voice_that_may_be_babble_does_not_interrupt_by_lasting(bench, speaking):
    """Babble lasts, so the agent is not held for it, not even for a moment."""
    b = bench(speaking).take(BABBLE).wait(6).take(VoiceStopped()).wait(0.3).take(BABBLE).wait(6)
    assert b.at(HoldSpeech) == math.inf
    assert b.turns == []
    assert {*b.decisions} == {"noise: distant"}


@pytest.mark.parametrize("gap_s", [0.08, 0.3])
@pytest.mark.parametrize("confidence", [0.3, 0.6, 0.85])
def test_a_voice_that_may_be_babble_does_not_hold_when_it_goes_on(
    bench, speaking, gap_s, confidence
):
    """Words in a gap of babble say nothing of what follows it."""
    words = VoiceWords(content="my parcel", final=False, tentative=True, confidence=confidence)
    b = bench(speaking).take(BABBLE).wait(0.4).take(VoiceStopped())
    b.take(words).wait(gap_s).take(BABBLE).wait(2.0)
    assert b.at(HoldSpeech) == math.inf
    assert b.turns == []


@pytest.mark.parametrize(
    ("lasted_s", "confidence", "turns"),
    [(0.6, 0.79, []), (0.6, 0.8, ["start"]), (1.3, 0.69, []), (1.3, 0.7, ["start"])],
)
def test_sure_words_of_a_voice_that_may_be_babble_interrupt(
    bench, speaking, lasted_s, confidence, turns
):
    """The recogniser is unsure of several voices at once, the surer the longer they last."""
    words = VoiceWords(content="where is my parcel", final=False, confidence=confidence)
    b = bench(speaking).take(BABBLE).wait(lasted_s).take(words).wait(0.1)
    assert b.turns == turns


def test_a_voice_in_babble_that_is_louder_behind_a_closure_interrupts(bench, speaking):
    """A voice that begins again nearer is the caller's, although it is one sound with the babble
    before it."""
    b = bench(speaking).take(BABBLE).wait(0.3).take(VoiceStopped()).wait(0.064)
    b.take(VoiceStarted())
    assert b.is_held
    b.wait(0.5)
    assert b.turns == ["start"]


def test_a_louder_voice_in_babble_holds_the_agent_and_interrupts(bench, speaking):
    """Who is louder than the babble is the caller, and has been heard for as long as it."""
    b = bench(speaking).take(BABBLE).wait(0.3)
    assert not b.is_held
    b.take(VoiceHint(kind="distant", probability=0.0))
    assert b.is_held
    b.wait(0.2)
    assert b.turns == ["start"]


@pytest.mark.parametrize(("silent_s", "turns"), [(0.9, []), (1.0, ["start"])])
def test_who_falls_silent_was_no_babble(bench, speaking, silent_s, turns):
    """A caller who already spoke when the line opened, and waits for the agent, is heard."""
    words = VoiceWords(content="where is my parcel", confidence=0.6)
    b = bench(speaking).take(BABBLE).wait(0.7).take(VoiceStopped())
    b.wait(0.3).take(words).wait(silent_s - 0.3)
    assert b.turns[:1] == turns
