"""Sounds that follow one another: how long they hold the agent, and when they are over."""

from __future__ import annotations

import pytest

from bargein.events import VoiceHint, VoiceStarted, VoiceStopped
from bargein.user_turns import TurnSettings


@pytest.mark.parametrize("gap_s", [0.12, 0.16, 0.5], ids=["close", "apart", "slow"])
def test_a_series_of_sounds_holds_the_agent_for_two_seconds_at_most(bench, speaking, gap_s):
    """A dog that barks holds the agent at first; then only words or a voice that lasts do."""
    b = bench(speaking)
    held_s = 0.0
    for _ in range(40):
        b.take(VoiceStarted()).wait(0.3)
        held_s += 0.3 if b.is_held else 0.0
        b.take(VoiceStopped()).wait(gap_s)
        held_s += gap_s if b.is_held else 0.0
    assert 1.0 < held_s < 2.5
    assert b.turns == []
    assert "unclear: series_holds_s" in b.decisions
    b.take(VoiceStarted()).wait(0.6)
    assert b.turns == ["start"], "a voice that lasts interrupts all the same"


@pytest.mark.parametrize("timeout", ["false_interruption_timeout_s", "speech_timeout_s"])
def test_a_longer_timeout_lets_a_series_of_sounds_hold_the_agent_for_longer(
    bench, speaking, timeout
):
    """One sound does not use up the time of a series: the next two hold the agent, too."""
    b = bench(speaking, TurnSettings(**{timeout: 2.0}))
    held = []
    for _ in range(4):
        b.take(VoiceStarted()).take(VoiceHint(kind="speech", probability=0.95)).wait(0.3)
        held.append(b.is_held)
        b.take(VoiceStopped()).wait(2.2)
    assert held == [True, True, True, False], "a series still has a limit"


def test_a_series_of_sounds_is_over_after_a_second_of_silence(bench, speaking):
    """The next sound after it holds the agent again."""
    b = bench(speaking)
    for _ in range(20):
        b.take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(0.12)
    assert not b.take(VoiceStarted()).is_held
    b.wait(0.3).take(VoiceStopped()).wait(1.1)
    assert b.take(VoiceStarted()).is_held
