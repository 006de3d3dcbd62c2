"""Tests of the moments at which a caller speaks."""

import pytest

from bargein.events import CallState
from bargein.rehearsal import Perception, ScriptLine, agent_falls_silent, agent_has_spoken


@pytest.mark.parametrize(
    ("spoken_s", "silent_s", "state", "due"),
    [
        (2.0, 0.6, "idle", True),
        (2.0, 0.6, "listening", True),
        (2.0, 0.59, "idle", False),
        (0.0, 9.0, "idle", False),
        (2.0, 0.6, "thinking", False),
        (2.0, 0.6, "tool", False),
        (2.0, 0.6, "speaking", False),
    ],
)
def test_agent_falls_silent(spoken_s: float, silent_s: float, state: CallState, due: bool) -> None:
    """The agent is silent when it has spoken, has paused long enough, and has nothing to say."""
    now = Perception(spoken_s=spoken_s, silent_s=silent_s, state=state)
    assert agent_falls_silent(0.6).is_due(now) is due


@pytest.mark.parametrize(("spoken_s", "due"), [(1.49, False), (1.5, True)])
def test_agent_has_spoken(spoken_s: float, due: bool) -> None:
    """The moment has come when so much of the agent's speech was heard."""
    assert agent_has_spoken(1.5).is_due(Perception(spoken_s=spoken_s)) is due


def test_cues_say_what_they_wait_for() -> None:
    """A cue reads well behind "until"."""
    assert agent_has_spoken(1.5).description == "the agent has spoken for 1.5 s"
    assert agent_falls_silent().description == "the agent has answered and falls silent"


def test_a_line_wants_one_thing() -> None:
    """A line cannot be meant to cut the agent and to leave it speaking."""
    with pytest.raises(ValueError, match=r"Line\('mhm'\): interrupts=True .* give one of them"):
        ScriptLine("mhm", agent_has_spoken(1), interrupts=True, longest_gap_s=0.3)


def test_what_leaves_the_agent_speaking_should_be_ignored() -> None:
    """A longest gap makes a line that should be ignored, also one of no length."""
    assert ScriptLine("mhm", agent_has_spoken(1), longest_gap_s=0.0).should_be_ignored
    assert not ScriptLine("no wait", agent_has_spoken(1), interrupts=True).should_be_ignored


def test_words_are_quoted_and_sounds_are_not() -> None:
    """What stands in brackets was no word; a sound never shows its bytes."""
    assert ScriptLine("mhm", agent_has_spoken(1)).shown == "“mhm”"
    line = ScriptLine("(coughs)", agent_has_spoken(1), sound=b"1234")
    assert line.shown == "(coughs)"
    assert "1234" not in repr(line)
