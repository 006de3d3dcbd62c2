"""Settings that hold at some times only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bargein.events import UserStartedSpeaking, UserStoppedSpeaking
from bargein.nodes.user_turns._overlays import SettingsInForce
from bargein.routes import open_router
from bargein.user_turns import AgentView, ChangeTurns, TurnSettings, when

VIEW = AgentView(state="speaking", agent="clerk", route="bridge.on(UserStoppedSpeaking).map(f)")


def in_force(*overlays, view=VIEW):
    return SettingsInForce(TurnSettings(), overlays).at(view)


def test_a_state():
    """An overlay for a state holds in it alone."""
    overlay = when(state="speaking", min_words=3)
    assert in_force(overlay).min_words == 3
    assert in_force(overlay, view=replace(VIEW, state="tool")).min_words == 1


def test_several_states():
    """Several states are given as a tuple."""
    overlay = when(state=("tool", "thinking"), min_words=3)
    assert in_force(overlay).min_words == 1
    assert in_force(overlay, view=replace(VIEW, state="tool")).min_words == 3


def test_an_agent():
    """An overlay for an agent holds while that has the floor."""
    overlay = when(agent="clerk", mute=("tool",))
    assert in_force(overlay).mute == ("tool",)
    assert in_force(overlay, view=replace(VIEW, agent="billing")).mute == ()


@pytest.mark.parametrize(
    ("pattern", "holds"),
    [("*UserStoppedSpeaking*", True), ("*DTMFInput*", False), (VIEW.route, True)],
)
def test_a_route_by_a_pattern(pattern, holds):
    """A route is named by how it is written."""
    assert (in_force(when(route=pattern, min_words=3)).min_words == 3) is holds


async def test_a_route_itself():
    """A chain names itself, also if what it is written with looks like a pattern."""
    async with open_router() as router:
        route = router.on([UserStoppedSpeaking, UserStartedSpeaking], name="clerk").map(str)
        other = router.on(UserStoppedSpeaking, name="clerk").map(str)
        overlay = when(route=route, min_words=3)
        assert in_force(overlay, view=replace(VIEW, route=str(route))).min_words == 3
        assert in_force(overlay, view=replace(VIEW, route=str(other))).min_words == 1


def test_the_last_overlay_counts():
    """Of several that hold, the last one changes what both name."""
    first = when(state="speaking", min_words=3, min_duration_s=2.0)
    assert in_force(first, when(agent="clerk", min_words=5)).min_words == 5
    assert in_force(first, when(agent="clerk", min_words=5)).min_duration_s == 2.0


def test_changes_count_more_than_all_before():
    """ChangeTurns comes after settings and overlays, and may itself be for a state only."""
    force = SettingsInForce(TurnSettings(), (when(state="speaking", min_words=3),))
    force.change(ChangeTurns(min_words=5).overlay)
    assert force.at(VIEW).min_words == 5
    force.change(ChangeTurns(state="tool", min_words=9).overlay)
    assert force.at(VIEW).min_words == 5
    assert force.at(replace(VIEW, state="tool")).min_words == 9


def test_changes_do_not_pile_up():
    """A change takes the place of an earlier one of the same setting for the same time."""
    force = SettingsInForce(
        TurnSettings(), (when(state="speaking", min_words=3, min_duration_s=2),)
    )
    for number in range(1, 50):
        force.change(ChangeTurns(state="speaking", min_words=number).overlay)
    assert len(force.overlays) == 2
    assert (force.at(VIEW).min_words, force.at(VIEW).min_duration_s) == (49, 2)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: when(state="speeking", min_words=2), "did you mean 'speaking'"),
        (lambda: when(state=7, min_words=2), r"when\(state=\) is a name"),
        (lambda: when(agent="", min_words=2), r"when\(agent=\) is a name"),
        (lambda: when(route=7, min_words=2), r"when\(route=\) is a chain"),
        (lambda: when(state="speaking"), "changes nothing"),
        (lambda: when(min_wrds=2), "did you mean 'min_words'"),
        (lambda: when(min_words="two"), r"min_words=\) is a whole number"),
        (lambda: ChangeTurns(), "changes nothing"),
        (lambda: ChangeTurns(endpointing=1.0), r"wait_s\(pause\)"),
    ],
)
def test_mistakes_fail_when_made(make, error):
    """A wrong name or value is an error at once, with the field and what is known."""
    with pytest.raises((TypeError, ValueError), match=error):
        make()
