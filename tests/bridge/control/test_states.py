"""The table of states: whole, and the same as the docs' picture."""

from __future__ import annotations

import pytest

from bridge.control._states import (
    MACHINE,
    STATES,
    STEPS,
    IllegalStep,
    check_step,
    diagram,
    refusal,
)
from bridge.control._verbs import STRENGTH, VERBS


def test_every_state_says_what_every_verb_does():
    """The table has a cell for each state and verb, and each names a state or gives a reason."""
    for state in STATES:
        for verb in VERBS:
            cell = MACHINE[state][verb]
            assert cell in STATES or (cell.startswith("-") and len(cell) > 5), (state, verb)


def test_a_verb_leads_only_where_a_step_leads():
    """Each accepted verb ends in the same state or in one that may follow it."""
    for state in STATES:
        for verb in VERBS:
            cell = MACHINE[state][verb]
            assert cell.startswith("-") or cell == state or cell in STEPS[state], (state, verb)


def test_nothing_follows_the_end():
    """A closed call refuses every verb and every step."""
    assert all(refusal("closed", verb) == "the call is over" for verb in VERBS)
    assert not STEPS["closed"]


def test_an_illegal_step_names_state_and_verb():
    """The error says from where, to where, and by which verb."""
    with pytest.raises(IllegalStep, match="no step from state 'closed' to 'idle' by 'resume'"):
        check_step("closed", "idle", "resume")
    check_step("idle", "thinking")


def test_verbs_are_in_the_order_of_their_strength():
    """No two verbs are equally strong; the order is that of the contract."""
    order = sorted(VERBS, key=lambda verb: -STRENGTH[verb])
    assert order == [
        "shutdown",
        "emergency_stop",
        "cancel",
        "redirect",
        "background",
        "pause",
        "barge_in",
        "resume",
    ]


def test_the_picture_shows_every_step_that_a_verb_makes():
    """Each accepted verb that changes the state is an arrow of the diagram."""
    picture = diagram()
    for state in STATES:
        for verb in VERBS:
            cell = MACHINE[state][verb]
            if not cell.startswith("-") and cell != state:
                (arrow,) = [
                    line for line in picture.splitlines() if f" {state} --> {cell}: " in line
                ]
                assert verb in arrow.partition(": ")[2].split(", ")
