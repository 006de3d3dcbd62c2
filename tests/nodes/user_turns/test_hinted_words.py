"""What becomes of words that only the recogniser's hint makes likely, without a call."""

from __future__ import annotations

from bargein.events import (
    TurnDecided,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)

MOCHA = VoiceWords(content="Mocha, mocha,", confidence=0.541, unhinted_confidence=0.325)


def test_a_hint_read_into_a_cough_leaves_the_agent_speaking(bench, speaking):
    """The speech goes on where it stood; the decision says that the words were the hint's."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.3)
    b.take(MOCHA).rest()
    assert b.turns == []
    assert not b.is_held
    [decided] = [e for e in b.events(TurnDecided) if e.rule == "hint_words"]
    assert decided.decision == "noise"
    assert decided.values["unhinted_confidence"] == 0.325


def test_a_word_of_the_hint_is_a_turn_while_the_agent_is_silent(bench):
    """ "Mocha." is an answer to what the agent asked, however unsure the recogniser is."""
    b = bench().take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.3)
    b.take(MOCHA).rest()
    assert b.turns == ["start", "Mocha, mocha,", "stop"]


def test_other_words_beside_those_of_the_hint_count(bench, speaking):
    """One segment with words that are not in the hint is enough."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.3)
    b.take(MOCHA)
    assert b.turns == []
    b.take(VoiceWords(content="please", segment=1, confidence=0.9)).rest()
    assert b.turns[0] == "start"
