"""How sure the recogniser is of an ending reaches the decision about the end of a turn."""

from __future__ import annotations

import pytest

from bargein.events import TurnDecided, TurnScored, VoiceStarted, VoiceStopped, VoiceWords
from bargein.user_turns import TurnSettings


def heard(content: str, sure: float | None, segment: int = 0) -> VoiceWords:
    """Return final words, with the recogniser's confidence in their ending."""
    return VoiceWords(content=content, segment=segment, ending_confidence=sure)


@pytest.mark.parametrize(
    ("words", "wait_s", "evidence"),
    [
        ([heard("A large mocha.", None)], 0.6, "sound"),
        ([heard("A large mocha.", 0.8)], 0.32, "sound and ending"),
        ([heard("A large mark.", 0.0)], 1.0, "unsure ending"),
        ([heard("A large mark.", 0.0), heard("Mocha, please.", 0.8, 1)], 0.32, "sound and ending"),
        ([heard("A large mocha.", 0.8), heard("And a mark.", 0.0, 1)], 1.0, "unsure ending"),
        ([heard("A large mocha.", 0.8), heard("", None, 1)], 0.32, "sound and ending"),
    ],
)
def test_the_ending_of_the_last_words_counts(bench, words, wait_s, evidence):
    """The decision says that it was the ending; a recogniser that reports none changes nothing."""
    b = bench()
    b.settings = TurnSettings()
    b.take(VoiceStarted()).wait(1.5).take(VoiceStopped()).take(TurnScored(complete=0.9))
    for each in words:
        b.take(each)
    b.wait(wait_s - 0.01)
    assert b.turns == ["start"]
    b.wait(0.02)
    assert b.turns[-1] == "stop"
    values = b.events(TurnDecided)[-1].values
    assert (values["wait_s"], values["evidence"]) == (wait_s, evidence)
