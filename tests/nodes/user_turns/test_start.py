"""When a turn begins while the agent is idle."""

from __future__ import annotations

import pytest

from bargein.user_turns import Sound, StartOnVoice, StartOnWords


def test_a_voice_begins_at_once():
    """By default the first moment of a voice is enough."""
    assert StartOnVoice().begins(Sound(0.0))


def test_a_voice_may_have_to_last():
    """Words are enough, however short their sound was."""
    start = StartOnVoice(after_s=0.3)
    assert not start.begins(Sound(0.0, voiced_s=0.2))
    assert start.begins(Sound(0.0, voiced_s=0.3))
    assert start.begins(Sound(0.0, voiced_s=0.1, text="tea"))
    assert start.ask_after_s == 0.3


def test_words_begin_a_turn():
    """StartOnWords counts words, or characters where there are no spaces."""
    assert not StartOnWords().begins(Sound(0.0, voiced_s=9.0))
    assert StartOnWords().begins(Sound(0.0, text="tea"))
    assert not StartOnWords(2).begins(Sound(0.0, text="tea"))
    assert StartOnWords(2).begins(Sound(0.0, text="紅茶"))
    assert StartOnWords().ask_after_s is None


def test_wrong_numbers_fail_when_made():
    """The error names the strategy and the number."""
    with pytest.raises(ValueError, match=r"StartOnVoice\(after_s=\)"):
        StartOnVoice(-1)
    with pytest.raises(ValueError, match=r"StartOnWords\(min_words=\)"):
        StartOnWords(0)
