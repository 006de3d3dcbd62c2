"""The agent of the examples that calls people."""

import pytest
import trio

from bargein.events import CallActionFailed, UserStartedSpeaking
from bargein.testing import open_call

from .conftest import end_of, heard, say


async def test_a_person_is_asked(example, autojump_clock):
    """A person who says hello hears about the appointment and is asked."""
    async with open_call(example.answer) as caller:
        assert (await say(caller, "Hello?")).endswith("Will you be there?")
        await say(caller, "Yes, I will.")
        assert await end_of(caller) == "confirmed"


async def test_a_person_may_interrupt(example, autojump_clock):
    """The answer to a question that was cut counts."""
    async with open_call(example.answer) as caller:
        await caller.says("Hello?", takes_s=1.0)
        await trio.sleep(2)
        assert (await say(caller, "No, I can't.")).startswith("I cancel it")


async def test_a_machine_gets_the_message_once_and_whole(example, autojump_clock):
    """A beep in the middle is not a barge-in, and no question follows."""
    async with open_call(example.answer) as caller:
        await caller.says("I am out. Leave a message after the tone.", takes_s=1.0)
        await trio.sleep(1)
        caller.publish(UserStartedSpeaking())  # the beep
        await caller.quiet()
        assert heard(caller) == f"{example.REMINDER} Please call us back. Goodbye."
        assert await end_of(caller) == "voicemail_detected"


@pytest.mark.parametrize(
    "menu",
    [
        "For opening hours press one, for appointments press two.",
        "Press 1 for opening hours. Press 2 to make an appointment.",
        "For appointments, dial two.",
    ],
)
async def test_a_menu_gets_the_key_for_appointments(example, autojump_clock, menu):
    """The key is pressed once, and whoever answers next counts as a person."""
    async with open_call(example.answer, telephone=True) as caller:
        await say(caller, menu)
        assert caller.pressed == ("2",)
        assert heard(caller) == ""
        assert (await say(caller, "Reception, good morning.")).endswith("Will you be there?")


async def test_a_menu_hears_the_key_that_cannot_be_pressed(example, autojump_clock):
    """Where the line has no keys, the agent says which one it would press."""
    async with open_call(example.answer) as caller:
        await say(caller, "For appointments, dial two.")
        await caller.quiet()
        assert [e.reason for e in caller.events(CallActionFailed)] == [
            "the caller's line cannot press keys"
        ]
        assert heard(caller) == "2"
        assert (await say(caller, "Reception, good morning.")).endswith("Will you be there?")


async def test_silence_is_asked_who_is_there(example, autojump_clock):
    """Nobody says a word for four seconds."""
    async with open_call(example.answer) as caller:
        await caller.quiet()
        await trio.sleep(4)
        await caller.quiet()
    assert heard(caller) == "Hello, is anybody there?"
