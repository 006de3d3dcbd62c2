"""The log line of a barge-in; 10 characters are said in a second."""

from __future__ import annotations

from collections.abc import AsyncIterator, MutableMapping
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from bargein import Call, ChatNode, Message
from bargein.events import (
    AgentHandoff,
    AgentResponse,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import Caller, ScriptedModel, calls, open_call
from bargein.tools import finish, tool

SECRET = "Your balance is nine. "
"""What the agent says, 2.2 s long; no line of a barge-in may hold a word of it."""

KEYS = {
    "event", "log_level", "answer", "agent", "answers", "cause", "by", "rule", "turn_rule", "phase",
    "heard_s", "dropped_s", "heard_chars", "dropped_chars",
}  # fmt: skip


class Teller:
    """Thinks for a second, says what it knows, and goes on generating."""

    def __init__(self, name: str = "teller") -> None:
        self.name = name

    async def generate(self, message: Message) -> AsyncIterator[object]:
        await trio.sleep(1)
        yield AgentResponse(content=SECRET)
        await trio.sleep(9)


async def tells(call: Call) -> None:
    call.converse(Teller())


async def two_tell(call: Call) -> None:
    call.converse(Teller("first"))
    call.converse(Teller("second"))


Lines = list[MutableMapping[str, Any]]


def lines(logs: Lines) -> Lines:
    return [line for line in logs if line["event"] == "barge_in"]


async def asks(caller: Caller) -> None:
    caller.publish(UserTranscriptionReceived(content="what is my balance"))
    caller.publish(UserStoppedSpeaking())


async def test_a_barge_in_is_one_line(autojump_clock):
    """It says what cut which answer by which rule in which phase, and how much was heard."""
    with capture_logs() as logs:
        async with open_call(tells, chars_per_s=10) as caller:
            await asks(caller)
            await caller.at(1.5)
            caller.publish(UserStartedSpeaking())
            await caller.quiet()
    assert lines(logs) == [
        {
            "event": "barge_in",
            "log_level": "info",
            "answer": 1,
            "agent": "teller",
            "answers": 1,
            "cause": "user.started_speaking",
            "by": "caller",
            "rule": "interrupt_on(UserStartedSpeaking)",
            "turn_rule": None,
            "phase": "speaking",
            "heard_s": 0.5,
            "dropped_s": 1.7,
            "heard_chars": 4,
            "dropped_chars": 18,
        }
    ]


async def test_its_phase_is_that_of_the_moment(autojump_clock):
    """An agent that was thinking had said nothing; one that has generated all is speaking."""
    with capture_logs() as logs:
        async with open_call(tells, chars_per_s=10) as caller:
            await asks(caller)
            await caller.at(0.4)
            caller.publish(UserStartedSpeaking())
            notice = caller.call.say(SECRET)
            await caller.at(1.0)
            caller.publish(UserStartedSpeaking())
            assert await notice == "interrupted"
    assert [(each["phase"], each["heard_s"], each["dropped_s"]) for each in lines(logs)] == [
        ("thinking", 0.0, 0.0),
        ("speaking", 0.6, 1.6),
    ]


async def test_several_answers_that_are_cut_are_one_line(autojump_clock):
    """Two agents and a fixed text are cut by one event; the one that is heard is named."""
    with capture_logs() as logs:
        async with open_call(two_tell, chars_per_s=10) as caller:
            await asks(caller)
            await caller.at(1.2)
            caller.call.say("By the way.")
            await caller.at(1.5)
            caller.publish(UserStartedSpeaking())
            caller.publish(UserStartedSpeaking())  # nothing is left for it
            await caller.quiet()
    [line] = lines(logs)
    assert (line["agent"], line["answers"], line["phase"]) == ("first", 3, "speaking")
    assert (line["heard_s"], line["dropped_s"]) == (0.5, 1.7 + 1.1)


def clerk() -> ChatNode:
    @tool
    async def looks() -> str:
        """Ends at once."""
        await trio.sleep(5)
        return "seen"

    @tool(policy=finish(2.0))
    async def writes() -> str:
        """May finish."""
        await trio.sleep(3)
        return "written"

    @tool(policy="detach")
    async def works() -> str:
        """Goes on."""
        await trio.sleep(4)
        return "done"

    model = ScriptedModel([calls(name) for name in ("looks", "writes", "works")], then="Well.")
    return ChatNode(model, tools=[looks, writes, works])


async def test_several_tools_that_are_cut_are_one_line(autojump_clock):
    """Whatever their policies make of it."""

    async def answer(call: Call) -> None:
        call.converse(clerk())

    with capture_logs() as logs:
        async with open_call(answer) as caller:
            await asks(caller)
            await caller.at(1.5)
            caller.publish(UserStartedSpeaking())
            await caller.at(3.0)
    [line] = lines(logs)
    assert (line["phase"], line["heard_s"]) == ("tool", 0.0)


async def test_the_verb_and_the_handle_of_an_answer_are_barge_ins(autojump_clock):
    """Their line names them in the place of a rule; no event has cut what a handle cuts."""
    with capture_logs() as logs:
        async with open_call(tells, chars_per_s=10) as caller:
            for cut in (caller.call.handle.barge_in, lambda: caller.call.answer.interrupt()):
                await asks(caller)
                await trio.sleep(1.5)
                cut()
                await caller.quiet()
    verb, handle = lines(logs)
    assert (verb["cause"], verb["by"], verb["rule"]) == ("call.control", "handle", "barge_in")
    assert (handle["cause"], handle["by"], handle["rule"]) == (
        None,
        None,
        "its handle was interrupted",
    )


@pytest.mark.parametrize("verb", ["cancel", "emergency_stop", "redirect", "background", "pause"])
async def test_other_verbs_are_no_barge_ins(autojump_clock, verb):
    """They have a line of their own, with what became of the work."""
    with capture_logs() as logs:
        async with open_call(tells, chars_per_s=10) as caller:
            await asks(caller)
            await caller.at(1.5)
            handle = caller.call.handle
            handle.redirect("no") if verb == "redirect" else getattr(handle, verb)()
            await caller.at(1.7)
    assert not lines(logs)
    assert [line["verb"] for line in logs if line["event"] == "verb_used"] == [verb]


async def test_a_hand_over_is_no_barge_in(autojump_clock):
    """What it cuts was cut by an agent of the app."""
    with capture_logs() as logs:
        async with open_call(two_tell, chars_per_s=10) as caller:
            caller.publish(AgentHandoff(target="first"))
            await asks(caller)
            await caller.at(1.5)
            caller.publish(AgentHandoff(target="second"))
            await caller.at(1.7)
    assert not lines(logs)


async def test_what_cuts_nothing_is_no_barge_in(autojump_clock):
    """A caller who speaks while the agent is silent, or after all was heard, interrupts nobody."""
    with capture_logs() as logs:
        async with open_call(tells, chars_per_s=10) as caller:
            caller.publish(UserStartedSpeaking())
            await asks(caller)
            await caller.quiet()
            caller.publish(UserStartedSpeaking())
            await caller.quiet()
    assert not lines(logs)


async def test_the_line_says_no_words(autojump_clock):
    """Its keys are known, and no value holds what anybody said."""
    with capture_logs() as logs:
        async with open_call(tells, chars_per_s=10) as caller:
            await asks(caller)
            await caller.at(2.0)
            caller.publish(UserStartedSpeaking())
            await caller.quiet()
    [line] = lines(logs)
    assert set(line) == KEYS
    assert not any(word in repr(line) for word in (*SECRET.split(), "what is my balance"))


@pytest.mark.parametrize(("at_s", "chars"), [(0.4, 0), (1.4, len(SECRET))])
async def test_where_only_text_travels_characters_are_counted(autojump_clock, at_s, chars):
    """No seconds are made up; what was sent is heard, and what was not generated is not counted."""
    with capture_logs() as logs:
        async with open_call(tells, audio=False) as caller:
            await asks(caller)
            await caller.at(at_s)
            caller.publish(UserStartedSpeaking())
            await caller.quiet()
    [line] = lines(logs)
    assert (line["heard_s"], line["dropped_s"]) == (None, None)
    assert (line["heard_chars"], line["dropped_chars"]) == (chars, 0)
