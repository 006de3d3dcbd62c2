"""What a call is doing, in one word."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from bargein import Call, Message
from bargein.events import (
    AgentResponse,
    StateChanged,
    ToolCall,
    ToolResult,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import Caller, open_call


def states(caller: Caller) -> list[tuple[float, str]]:
    """Every change with its time; the numbers are checked to rise by one."""
    changes = [item for item in caller.received if isinstance(item.event, StateChanged)]
    assert [item.event.number for item in changes] == list(range(1, len(changes) + 1))
    return [(round(item.at_s, 3), item.event.state) for item in changes]


def agent(generate: object) -> object:
    async def answer(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        chain.stream(generate).broadcast()

    return answer


async def test_the_states_of_an_answer(autojump_clock):
    """Listening, thinking, speaking, idle: each once, at its time, never two at one moment."""

    async def generate(message: Message) -> AsyncIterator[object]:
        await trio.sleep(0.5)
        yield AgentResponse(content="One two")

    async with open_call(agent(generate), chars_per_s=10) as caller:
        assert caller.call.current_state == "idle"
        await caller.says("hello", takes_s=1)
        await caller.quiet()
        assert states(caller) == [
            (0.0, "listening"), (1.0, "thinking"), (1.5, "speaking"), (2.2, "idle"),
        ]  # fmt: skip
    assert states(caller)[-1] == (2.2, "closed")


async def test_a_barge_in_goes_straight_to_listening(autojump_clock):
    """Speaking, then listening, with nothing between, in the step of the interrupt."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One two three")
        await trio.sleep(10)

    async with open_call(agent(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.publish(UserStartedSpeaking())
        assert caller.call.current_state == "listening"
        assert [state for _, state in states(caller)] == ["thinking", "speaking", "listening"]


async def test_one_utterance_goes_over_into_the_next(autojump_clock):
    """Between utterances that follow without a gap the state does not flicker."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One. ", interruptible=False)
        yield AgentResponse(content="Two.")

    async with open_call(agent(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        caller.call.say("Three.")
        await caller.quiet()
        assert states(caller) == [(0.0, "thinking"), (0.0, "speaking"), (1.5, "idle")]


async def test_a_pause_for_thought_is_still_speaking(autojump_clock):
    """An utterance that waits for the rest of its text is not over, and the state does not move."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One. ")
        await trio.sleep(3)
        yield AgentResponse(content="Two.")

    async with open_call(agent(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert states(caller) == [(0.0, "thinking"), (0.0, "speaking"), (3.4, "idle")]


async def test_a_tool_shows(autojump_clock):
    """From its call to its result, and no longer than its answer."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield ToolCall(name="a", id="1")
        yield ToolCall(name="b", id="2")
        await trio.sleep(1)
        yield ToolResult(name="a", id="1")
        yield ToolResult(name="unknown", id="9")
        await trio.sleep(1)
        yield ToolResult(name="b", id="2")
        await trio.sleep(1)

    async with open_call(agent(generate)) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert states(caller) == [
            (0.0, "thinking"),
            (0.0, "tool"),
            (2.0, "thinking"),
            (3.0, "idle"),
        ]


async def test_a_tool_of_a_cut_answer_is_forgotten(autojump_clock):
    """The next answer does not show a tool whose result never came."""
    turns = iter([True, False])

    async def generate(message: Message) -> AsyncIterator[object]:
        if next(turns):
            yield ToolCall(name="a", id="1")
        await trio.sleep(1)

    async with open_call(agent(generate)) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        await caller.says("no", takes_s=0.5)
        await caller.quiet()
        assert states(caller)[2:] == [(0.5, "listening"), (1.0, "thinking"), (2.0, "idle")]


async def test_the_end_closes(autojump_clock):
    """Closed is the last state, also when the end comes in mid-speech."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One two three")

    async with open_call(agent(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.call.end("hangup")
        await caller.at(5)
        assert states(caller)[-1] == (0.5, "closed")


async def test_what_an_app_keeps_needs_a_model(autojump_clock):
    """Without one the error says where that is said, and how to ask what the call is doing."""

    async def says_nothing(message: Message) -> AsyncIterator[object]:
        return
        yield

    async with open_call(agent(says_nothing)) as caller:
        with pytest.raises(TypeError, match=r"App\(state=\).*call\.current_state"):
            caller.call.state  # noqa: B018
        with pytest.raises(TypeError, match=r"App\(state=\)"):
            caller.call.state = 1
