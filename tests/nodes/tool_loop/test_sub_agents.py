"""An agent inside a tool counts to the answer, and is cut with its tool."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio

from bargein import Caps, ChatNode
from bargein.events import (
    AgentResponse,
    AnswerEnded,
    ToolCall,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import open_call
from bargein.tools import current_tool, tool

from ..answers_by_script import answer_with
from .script import Script, asks, nap, results, texts


def sub_agent(model, **options):
    @tool
    async def research(question: str) -> str:
        """Ask a sub-agent."""
        node = ChatNode(model, tools=[nap], **options)
        node.context.add(UserTranscriptionReceived(content=question))
        pieces = [piece async for piece in node.generate() if isinstance(piece, AgentResponse)]
        return "".join(piece.content for piece in pieces)

    return research


async def test_a_sub_agent_counts_to_the_answer(autojump_clock):
    """What an agent inside a tool does counts to the caps of the answer that called the tool."""
    inner = Script([asks("nap", "i", seconds=1)], ["four"])
    outer = Script([asks("research", "o", question="2+2")], [1, "It is four."])
    node = ChatNode(outer, tools=[sub_agent(inner)], caps=Caps(steps=9))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.until(lambda c: len(outer.asked) == 2)
        assert caller.call.snapshot().caps["steps"] == (6, 9)
        await caller.quiet()
        assert caller.heard == "It is four."
        assert results(caller)["o"].content == "four"
        assert texts(outer.asked[1], "tool") == ["four"]
    assert texts(inner.asked[1], "tool") == ["slept 1.0"]
    assert texts(inner.asked[1], "user") == ["2+2"]


async def test_a_sub_agent_is_cut_with_its_tool(autojump_clock):
    """Cutting the tool ends the agent inside it and the tools of that; nothing more begins."""
    inner = Script([asks("nap", "i", seconds=5)], ["four"])
    outer = Script([asks("research", "o", question="2+2")], ["It is four."])
    async with open_call(
        answer_with(ChatNode(outer, tools=[sub_agent(inner)])), audio=False
    ) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.publish(UserStartedSpeaking())
        await trio.testing.wait_all_tasks_blocked()
        assert not caller.call.running_tools
        assert set(results(caller)) == {"i", "o"}
    assert (len(inner.asked), len(outer.asked)) == (1, 1)


async def test_a_sub_agent_that_swallows_cancellation_starts_nothing(autojump_clock):
    """Inside a tool that was cut no tool is called, also where the cancellation was swallowed."""

    class Stubborn(Script):
        async def stream(self, messages, *, tools=()):
            with suppress(BaseException):
                await trio.sleep(1.5)
            yield asks("nap", "i", seconds=1)

    outer = Script([asks("research", "o", question="2+2")], ["It is four."])
    node = ChatNode(outer, tools=[sub_agent(Stubborn())])
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(5)
        assert [event.name for event in caller.events(ToolCall)] == ["research"]


async def test_a_sub_agent_at_its_cap_fails_its_tool_alone(autojump_clock):
    """A cap of the inner agent's is an error of the tool; the answer goes on."""
    inner = Script([asks("nap", "i", seconds=1)], ["four"])
    outer = Script([asks("research", "o", question="2+2")], ["I cannot say."])
    tools = [sub_agent(inner, caps=Caps(steps=1))]
    async with open_call(answer_with(ChatNode(outer, tools=tools)), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert results(caller)["o"].error
        assert "'steps' is reached" in results(caller)["o"].content
        assert caller.heard == "I cannot say."
        assert caller.events(AnswerEnded)[0].outcome == "completed"


async def test_a_cap_that_is_reached_inside_a_sub_agent_ends_the_answer(autojump_clock):
    """However deep it is reached, the answer ends as capped, and no model is asked further."""
    inner = Script([asks("nap", "i", seconds=1)], ["four"])
    middle = Script([asks("research", "m", question="2+2")], ["so I hear"])
    outer = Script([asks("research", "o", question="2+2")], ["It is four."])
    deep = sub_agent(inner)

    @tool
    async def research(question: str) -> str:
        """Ask a sub-agent that has one of its own."""
        node = ChatNode(middle, tools=[deep])
        return "".join([piece.content async for piece in node.generate()])

    node = ChatNode(outer, tools=[research], caps=Caps(tool_calls=2))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        ended, _ = caller.events(AnswerEnded)  # and the apology
        assert (ended.outcome, ended.capped) == ("capped", "tool_calls")
        assert set(results(caller)) == {"o", "m"}
        assert not caller.call.running_tools
    assert (len(inner.asked), len(middle.asked), len(outer.asked)) == (1, 1, 1)


async def test_an_answer_that_a_tool_has_caused_has_caps_of_its_own(autojump_clock):
    """An answer begun by an event that a tool publishes has caps of its own."""

    @tool
    async def nudge() -> str:
        """Have the other agent answer."""
        current_tool().call.publish(UserStoppedSpeaking(), source="tool")
        return "nudged"

    first, second = Script([asks("nudge", "a")], ["x"]), Script(["heard nothing"])
    node = ChatNode(first, tools=[nudge], caps=Caps(steps=3))
    other = ChatNode(second, caps=Caps(steps=1))

    async def answer(call):
        bridge = call.bridge(node, name="agent")
        bridge.on(UserStoppedSpeaking, source="caller").stream(node.generate).broadcast()
        unheard = call.bridge(other, name="other")
        unheard.on(UserStoppedSpeaking, source="tool").stream(other.generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.events(AnswerEnded)[-1].outcome == "completed"
        assert caller.heard == "x"
    assert len(second.asked) == 1


async def swallows(work) -> str:
    try:
        return await work()
    except Exception as error:  # noqa: BLE001 - as many a tool does
        return f"it failed: {type(error).__name__}"


async def wraps(work) -> str:
    try:
        return await work()
    except Exception as error:
        raise LookupError("it failed") from error


async def groups(work) -> str:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(work)
    return "done"


@pytest.mark.parametrize("handle", [swallows, wraps, groups])
@pytest.mark.parametrize("cap", [Caps(tool_calls=3), Caps(repeats=1), Caps(steps=6)])
async def test_a_cap_that_a_tool_keeps_to_itself_ends_the_answer(autojump_clock, cap, handle):
    """What a tool makes of the error of the agent inside it does not let the answer go on."""
    inner = Script(*[[asks("nap", f"i{number}", seconds=1)] for number in range(9)])
    research = sub_agent(inner)

    @tool
    async def delegate() -> str:
        """Ask a sub-agent, come what may."""
        return await handle(lambda: research("2+2"))

    outer = Script([asks("delegate", "o")], ["It is four."])
    node = ChatNode(outer, tools=[delegate], caps=cap)
    async with open_call(answer_with(node), audio=False, expect_errors=True) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(30)
        end, _ = caller.events(AnswerEnded)  # and the apology
        assert end.outcome == "capped"
        assert getattr(cap, end.capped) is not None
        assert len(outer.asked) == 1


async def test_a_cap_of_the_agent_inside_ends_that_alone(autojump_clock):
    """A tool may go on without an agent that has used up caps of its own."""
    inner = Script(*[[asks("nap", f"i{number}", seconds=1)] for number in range(9)])
    research = sub_agent(inner, caps=Caps(tool_calls=2))

    @tool
    async def delegate() -> str:
        """Ask a sub-agent, come what may."""
        return await swallows(lambda: research("2+2"))

    outer = Script([asks("delegate", "o")], ["It may be four."])
    node = ChatNode(outer, tools=[delegate], caps=Caps(tool_calls=9))
    async with open_call(answer_with(node), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "It may be four."
        assert results(caller)["o"].content == "it failed: CapReachedError"
