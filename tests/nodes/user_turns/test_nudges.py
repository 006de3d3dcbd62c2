"""Silences are told, each as often as wanted."""

from __future__ import annotations

import math
from dataclasses import replace

from bargein.events import AgentIdle, TurnDecided, UserAway
from bargein.nodes.user_turns._nudges import Nudges
from bargein.user_turns import AgentView, TurnSettings

IDLE = AgentView()
SPEAKING = AgentView(is_audible=True, is_at_work=True, state="speaking")
THINKING = AgentView(is_at_work=True, state="thinking")
AWAY = TurnSettings(user_away_after_s=5.0, user_away_times=2)
SLOW = TurnSettings(agent_idle_after_s=4.0, agent_idle_times=2)


def looks(nudges, until_s, view, settings, start_s=0.0, user_speaks=False):
    """Look whenever it wants to; return what came, with its time."""
    found = [(start_s, e) for e in nudges.look(start_s, view, settings, user_speaks=user_speaks)]
    while nudges.look_at_s <= until_s:
        at_s = nudges.look_at_s
        found += [(at_s, e) for e in nudges.look(at_s, view, settings, user_speaks=user_speaks)]
    return [(at_s, event) for at_s, event in found if not isinstance(event, TurnDecided)]


def test_nobody_is_told_anything_by_default():
    """Nudges are off unless they are asked for."""
    nudges = Nudges()
    assert looks(nudges, 1e6, IDLE, TurnSettings()) == []
    assert nudges.look_at_s == math.inf


def test_a_caller_who_says_nothing():
    """UserAway comes after each further silence, as often as wanted."""
    assert looks(Nudges(), 100.0, IDLE, AWAY) == [
        (5.0, UserAway(away_s=5.0, count=1)),
        (10.0, UserAway(away_s=10.0, count=2)),
    ]


def test_the_agents_own_words_do_not_start_the_count_anew():
    """Asking "are you there?" is no sign of the caller; the silence after it is a new one."""
    nudges = Nudges()
    assert len(looks(nudges, 5.0, IDLE, AWAY)) == 1
    assert looks(nudges, 9.0, SPEAKING, AWAY, 6.0) == []
    assert looks(nudges, 99.0, IDLE, AWAY, 9.0) == [(14.0, UserAway(away_s=5.0, count=2))]


def test_a_caller_who_speaks_is_there():
    """A voice starts the count anew."""
    nudges = Nudges()
    looks(nudges, 99.0, IDLE, AWAY)
    assert looks(nudges, 199.0, IDLE, AWAY, 100.0, user_speaks=True) == []
    assert [at_s for at_s, _ in looks(nudges, 999.0, IDLE, AWAY, 200.0)] == [205.0, 210.0]


def test_an_agent_that_takes_long():
    """AgentIdle comes as often as wanted while it works without a sound."""
    assert looks(Nudges(), 100.0, THINKING, SLOW) == [
        (4.0, AgentIdle(idle_s=4.0, count=1)),
        (8.0, AgentIdle(idle_s=8.0, count=2)),
    ]


def test_a_tool_after_thinking_is_the_same_silence():
    """Only a sound, or the end of the work, ends it."""
    nudges = Nudges()
    assert looks(nudges, 3.0, THINKING, SLOW) == []
    tool = replace(THINKING, state="tool")
    assert looks(nudges, 5.0, tool, SLOW, 3.0) == [(4.0, AgentIdle(idle_s=4.0, count=1))]


def test_the_count_is_one_of_a_turn():
    """Speech of the same turn does not start the count anew; an idle agent does."""
    nudges = Nudges()
    assert len(looks(nudges, 4.0, THINKING, SLOW)) == 1
    looks(nudges, 6.0, SPEAKING, SLOW, 5.0)
    assert looks(nudges, 99.0, THINKING, SLOW, 6.0) == [(10.0, AgentIdle(idle_s=4.0, count=2))]
    looks(nudges, 100.0, IDLE, SLOW, 100.0)
    assert len(looks(nudges, 199.0, THINKING, SLOW, 101.0)) == 2


def test_an_agent_that_waits_for_a_person_is_not_idle():
    """A question for permission is no work, and a pause is none."""
    for state in ("waiting_permission", "waiting_input", "paused"):
        assert looks(Nudges(), 99.0, replace(THINKING, state=state), SLOW) == []


def test_a_late_look_tells_once():
    """A look that comes after several were due tells one of them."""
    nudges = Nudges()
    nudges.look(0.0, IDLE, AWAY, user_speaks=False)
    told = nudges.look(60.0, IDLE, AWAY, user_speaks=False)
    assert [e for e in told if isinstance(e, UserAway)] == [UserAway(away_s=60.0, count=1)]
    assert nudges.look_at_s == 65.0


def test_each_nudge_is_a_decision():
    """What was compared is told before it."""
    nudges = Nudges()
    nudges.look(0.0, IDLE, AWAY, user_speaks=False)
    decided, _ = nudges.look(5.0, IDLE, AWAY, user_speaks=False)
    assert decided == TurnDecided(
        about="nudge",
        decision="user_away",
        rule="user_away_after_s",
        values={"lasts_s": 5.0, "user_away_after_s": 5.0, "count": 1},
    )
