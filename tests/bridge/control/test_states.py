"""The table of states: whole, and the only way from one state to another."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import trio

from bargein import Call, Message
from bargein.bridge._verbs import WITH_WORDS
from bargein.bridge.control._call_state import STATES, TABLE, IllegalStepError
from bargein.bridge.control.verbs import ROWS
from bargein.control import STRENGTH, VERBS
from bargein.events import AgentResponse, StateChanged, UserStoppedSpeaking
from bargein.testing import open_call
from docs.scripts import state_picture


def test_every_state_says_what_every_verb_does():
    """The table has a row for each state and a cell for each verb: where to, or why not."""
    assert set(TABLE) == set(STATES)
    for state, row in TABLE.items():
        assert set(row.verbs) == set(VERBS)
        for verb, cell in row.verbs.items():
            assert cell.to in STATES or len(cell.reason) > 5, (state, verb)


def test_a_verb_leads_only_where_a_step_leads():
    """Each accepted verb ends in the same state or in one that may follow it."""
    for state, row in TABLE.items():
        for verb, cell in row.verbs.items():
            assert cell.to in (None, state) or cell.to not in row.never, (state, verb)


def test_nothing_follows_the_end():
    """A closed call refuses every verb and every step."""
    for cell in TABLE["closed"].verbs.values():
        assert (cell.to, cell.reason) == (None, "the call is over")
    assert set(TABLE["closed"].never) == set(STATES)


def test_a_pause_follows_only_where_something_is_held():
    """No step leads into a pause but by the verb: from where the table accepts it."""
    for state, row in TABLE.items():
        accepts = row.verbs["pause"].to is not None
        assert set(row.never) == (set() if accepts else {"paused", "pausing"}) or state == "closed"


def test_an_illegal_step_names_state_and_verb():
    """The error says from where, to where, and by which verb."""
    error = IllegalStepError("closed", "idle", "resume")
    assert str(error) == "no step from state 'closed' to 'idle' by 'resume'"


async def test_a_verb_used_while_an_event_is_told_leaves_no_step_out(autojump_clock):
    """A pause in the very step in which an answer begins: thinking is told before paused."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One two three")

    async def answer(call: Call) -> None:
        call.bridge(name="agent").on(UserStoppedSpeaking).stream(generate).broadcast()
        call.router.add_sink(lambda _: call.handle.pause() and None, UserStoppedSpeaking)

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        assert [event.state for event in caller.events(StateChanged)] == ["thinking", "paused"]
        caller.call.handle.resume()
        await caller.quiet()
    assert caller.heard == "One two three"


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


def test_a_verb_with_words_is_known_to_whoever_sends_it():
    """The protocol and the client ask for words exactly where a row takes them as input."""
    assert {row.verb for row in ROWS.values() if row.text == "text"} == WITH_WORDS


def test_the_picture_shows_every_step_that_a_verb_makes():
    """Each accepted verb that changes the state is on one arrow of the picture, and no other."""
    steps = [
        (state, verb, cell.to)
        for state, row in TABLE.items()
        for verb, cell in row.verbs.items()
        if cell.to not in (None, state)
    ]
    assert sorted(state_picture.steps()) == sorted(steps)
    assert all(state_picture.verbs(start, end) for start, end in state_picture.ARROWS)


def test_the_picture_shows_only_steps_that_may_follow():
    """What follows without a verb follows by the table, and every state has its place."""
    assert not any(end in TABLE[start].never for start, end in state_picture.OTHERWISE)
    assert set(state_picture.BOXES) == set(STATES)


def test_the_page_of_control_shows_the_picture():
    """docs/control.md shows the picture, with words for who sees none; its number is right."""
    page = (Path(__file__).parents[3] / "docs" / "control.md").read_text()
    [words] = re.findall(r"!\[([^\]]+)\]\(pictures/states\.svg\)", page)
    assert len(words) > 10
    assert len(STATES) == 11
    assert "one of eleven states" in page
