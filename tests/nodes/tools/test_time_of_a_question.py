"""While a question is open, limits stand still or count on, as the caller may expect."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from bargein import ChatNode
from bargein.control import Caps
from bargein.events import (
    AnswerEnded,
    CapWarning,
    QuestionClosed,
    ToolResult,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import QuestionAnswer, ToolContext, tool
from tests.nodes.tools.asking import agent, asked, balance, ends, outcomes


async def test_silence_times_out(autojump_clock):
    """After so many seconds of silence, counted from the end of the question, the tool goes on."""
    answers = []
    async with open_call(agent(balance(answers, timeout_s=8))) as caller:
        await asked(caller)
        began_s = trio.current_time()
        await caller.receives(QuestionClosed)
        assert trio.current_time() - began_s == pytest.approx(8, abs=0.01)
        await caller.quiet()
        assert answers == [QuestionAnswer("timed_out")]


async def test_time_stands_still_while_somebody_speaks(autojump_clock):
    """A caller who speaks for long, and says nothing that is understood, is not silent."""
    answers = []
    async with open_call(agent(balance(answers, timeout_s=8))) as caller:
        await asked(caller)
        began_s = trio.current_time()
        await trio.sleep(3)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(20)
        caller.publish(UserStoppedSpeaking())
        await caller.receives(QuestionClosed)
        assert trio.current_time() - began_s == pytest.approx(28, abs=0.01)
        await caller.quiet()
        assert [answer.outcome for answer in answers] == ["timed_out"]


async def test_time_stands_still_in_a_pause(autojump_clock):
    """A pause takes no time of the question's; an answer in it reaches the tool at the resume."""
    answers = []
    async with open_call(agent(balance(answers, timeout_s=8))) as caller:
        await asked(caller)
        receipt = caller.call.handle.pause()
        assert caller.call.current_state == "paused"
        await trio.testing.wait_all_tasks_blocked()
        assert receipt.settled
        await trio.sleep(60)
        assert outcomes(caller) == []
        caller.publish(UserTranscriptionReceived(content="Savings"))
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(60)
        assert outcomes(caller) == ["answered"]
        assert answers == []
        caller.call.handle.resume()
        await caller.quiet()
        assert [answer.choice for answer in answers] == ["Savings"]
        assert ends(caller) == ["completed"]


async def test_no_end_of_the_time(autojump_clock):
    """Without a limit the tool waits for as long as the caller takes, and so does its own limit."""
    answers = []
    async with open_call(agent(balance(answers, timeout_s=None, limit_s=2))) as caller:
        await asked(caller)
        await trio.sleep(10_000)
        assert caller.call.current_state == "waiting_input"
        await caller.says("the first")
        await caller.quiet()
        assert [answer.choice for answer in answers] == ["Checking"]
        assert [result.outcome for result in caller.events(ToolResult)] == ["completed"]


async def test_the_limit_of_the_tool_goes_on_after_the_answer(autojump_clock):
    """What the tool does after the answer has what the tool's time limit had left."""
    ended = []

    @tool(timeout_s=2)
    async def slow(context: ToolContext) -> str:
        await trio.sleep(1)
        await context.ask("Go on?")
        began_s = trio.current_time()
        try:
            await trio.sleep(5)
        finally:
            ended.append(trio.current_time() - began_s)
        return "done"

    async with open_call(agent(slow), audio=False) as caller:
        await asked(caller)
        await trio.sleep(7)
        await caller.says("yes")
        await caller.quiet()
        assert ended == [pytest.approx(1)]
        assert [result.outcome for result in caller.events(ToolResult)] == ["timed_out"]


@pytest.mark.parametrize("policy", ["cancel", "detach"])
async def test_the_time_of_the_caller_is_none_of_the_answer(autojump_clock, policy):
    """A caller who thinks for a minute uses up neither the agent's cap nor its chain's limit."""
    answers = []
    model = ScriptedModel([calls("balance")], "Five euros.", then="Well.")
    node = ChatNode(model, tools=[balance(answers, policy=policy, timeout_s=None)],
                    caps=Caps(wall_s=3.0))  # fmt: skip

    async def answer(call):
        chain = call.bridge(node).on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        chain.stream(node.generate).timeout(3.0).broadcast()

    async with open_call(answer, audio=False) as caller:
        await asked(caller)
        await trio.sleep(60)
        caller.call.handle.pause()
        await trio.sleep(60)
        caller.call.handle.resume()
        await trio.sleep(60)
        assert caller.call.snapshot().caps["wall_s"] == (0, 3.0)
        await caller.says("the first")
        await caller.quiet()
        assert [answer.choice for answer in answers] == ["Checking"]
        assert ends(caller) == ["completed"]
        assert not caller.events(CapWarning)


async def test_the_cap_counts_on_after_the_answer(autojump_clock):
    """What the agent does after the answer has what it had left."""

    @tool
    async def slow(context: ToolContext) -> str:
        await trio.sleep(1)
        await context.ask("Go on?")
        await trio.sleep(5)
        return "done"

    model = ScriptedModel([calls("slow")])
    node = ChatNode(model, tools=[slow], caps=Caps(wall_s=3.0))

    async def answer(call):
        call.converse(node)

    async with open_call(answer, audio=False) as caller:
        await asked(caller)
        await trio.sleep(20)
        await caller.says("yes", takes_s=0)
        said_s = trio.current_time()
        await caller.receives(AnswerEnded)
        assert ends(caller)[0] == "capped"  # the apology follows
        assert trio.current_time() - said_s == pytest.approx(2)
