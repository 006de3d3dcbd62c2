"""The handle of an answer cuts that answer alone, and tells how it ended."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from bargein import Call, ChatNode
from bargein.events import (
    AgentResponse,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.llm import TextDelta, ToolCallRequest
from bargein.testing import Caller, ScriptedModel, calls, interrupt_everywhere, open_call
from bargein.tools import finish, tool
from tests.bridge.saying import counts, silent

# --- interrupt ------------------------------------------------------------------------------------


async def test_interrupt_cuts_this_answer_alone(autojump_clock):
    """What waits behind it begins at once; what was heard is remembered, with the cause."""
    async with open_call(silent, chars_per_s=10) as caller:
        first, second = caller.call.say("Hello there you. "), caller.call.say("Next")
        await caller.at(0.8)
        receipt = first.interrupt()
        assert (receipt.accepted, receipt.verb, receipt.answer) == (True, "barge_in", 1)
        assert receipt.phase == "speaking"
        assert len(caller.cleared) == 1
        assert await first == "interrupted"
        await receipt.settled
        assert caller.now_s == pytest.approx(0.8)
        assert await second == "completed"
        assert caller.now_s == pytest.approx(1.2)
        (record,) = caller.call.history.interruptions
        assert (record.heard, record.cause) == ("Hello", "its handle was interrupted")
        assert record.directive == ""


async def test_interrupt_of_one_that_waits_its_turn(autojump_clock):
    """It is never heard, and what is being said goes on."""
    async with open_call(silent, chars_per_s=10) as caller:
        first, second = caller.call.say("Hello there. "), caller.call.say("Never")
        await caller.at(0.5)
        assert second.interrupt().accepted
        assert await second == "interrupted"
        assert await first == "completed"
        assert caller.heard == "Hello there. "


async def test_interrupt_passes_what_may_not_be_interrupted(autojump_clock):
    """It is the app's own word, and no route's."""
    async with open_call(silent, chars_per_s=10) as caller:
        handle = caller.call.say("Hello there you", interruptible=False)
        await caller.at(0.8)
        assert handle.interrupt().accepted
        assert await handle == "interrupted"
        assert caller.heard == "Hello"


async def test_a_stale_interrupt_does_nothing(autojump_clock):
    """It says why; the answer after it is not touched."""
    async with open_call(silent, chars_per_s=10) as caller:
        old = caller.call.say("Old. ")
        await old
        handle = caller.call.say("Hello there")
        receipt = old.interrupt()
        assert (receipt.accepted, receipt.answer) == (False, 1)
        assert receipt.reason == "the answer is over: completed"
        assert receipt.settled
        assert await handle == "completed"
        assert caller.call.history.interruptions == ()


async def test_interrupt_twice(autojump_clock):
    """It is the same receipt, at once and later; there is one record."""
    async with open_call(silent, chars_per_s=10) as caller:
        handle = caller.call.say("Hello there")
        await caller.at(0.6)
        receipt = handle.interrupt()
        assert handle.interrupt() is receipt
        await receipt.settled
        assert await handle == "interrupted"
        assert handle.interrupt() is receipt
        assert len(caller.call.history.interruptions) == 1


async def test_interrupt_of_what_the_caller_has_cut(autojump_clock):
    """It comes too late, and says so; the record is that of the caller's cut."""
    async with open_call(silent, chars_per_s=10) as caller:
        handle = caller.call.say("Hello there")
        await caller.at(0.6)
        caller.publish(UserStartedSpeaking())
        assert handle.interrupt().reason == "the answer is over: interrupted"
        (record,) = caller.call.history.interruptions
        assert record.cause == "user.started_speaking"


async def test_interrupt_of_text_that_no_run_gave(autojump_clock):
    """What was published from outside of any chain is an answer too."""
    async with open_call(silent, chars_per_s=10) as caller:
        caller.call.publish(AgentResponse(content="Hello there"), source="agent")
        handle = caller.call.answer
        assert handle is not None
        await caller.at(0.6)
        assert handle.interrupt().accepted
        assert await handle == "interrupted"
        assert caller.heard == "Hello"


async def test_interrupt_while_paused(autojump_clock):
    """The answer is cut, the pause holds on, and nothing is left of it when the call goes on."""
    async with open_call(counts, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        handle = caller.call.answer
        assert handle is not None
        await caller.at(1.2)
        caller.call.handle.pause()
        assert handle.interrupt().accepted
        assert await handle == "interrupted"
        assert caller.call.control.is_paused
        caller.call.handle.resume()
        await caller.quiet()
        assert caller.heard == "one"
        assert await caller.call.say("Hello") == "completed"


async def test_interrupt_lets_tools_end_by_their_policies(autojump_clock):
    """The receipt tells what still runs, and settles with it."""

    @tool(policy=finish(2.0))
    async def save() -> str:
        """Save it."""
        await trio.sleep(1.5)
        return "saved"

    async def answer(call: Call) -> None:
        model = ScriptedModel(["One moment. ", calls("save")])
        call.converse(ChatNode(model, tools=[save]))

    async with open_call(answer, chars_per_s=10) as caller:
        await caller.says("save it", takes_s=0.0)
        await caller.at(0.5)
        handle = caller.call.answer
        assert handle is not None
        receipt = handle.interrupt()
        assert [still.tool for still in receipt.still_running] == ["save"]
        assert await handle == "interrupted"
        assert caller.now_s == pytest.approx(0.5)
        await receipt.settled
        assert caller.now_s == pytest.approx(1.5)
        (entry,) = [e for e in caller.call.history if e.role == "tool"]
        assert entry.outcome == "completed_after_interrupt"


async def test_interrupt_leaves_the_next_answer_alone(autojump_clock):
    """The agent is alive, and answers what is said next in full."""
    async with open_call(counts, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.2)
        handle = caller.call.answer
        assert handle is not None
        handle.interrupt()
        caller.publish(UserStoppedSpeaking())
        again = caller.call.answer
        assert (await handle, handle.heard) == ("interrupted", "one")
        with trio.fail_after(10):
            while again is None or again is handle:
                await trio.sleep(0.1)
                again = caller.call.answer
        assert await again == "completed"
        assert again.heard == "one two three four "


@pytest.mark.proof
@pytest.mark.parametrize("audio", [True, False], ids=["audio", "text"])
def test_wherever_an_answer_is_interrupted(audio):
    """At each point of a call with fixed texts, a model and a tool, all that has to hold holds."""

    @tool(policy=finish(2.0))
    async def look() -> str:
        """Look for it."""
        await trio.sleep(0.4)
        return "found"

    class Finder:
        async def stream(
            self, messages: list[dict], *, tools: object = ()
        ) -> AsyncIterator[object]:
            await trio.sleep(0.2)
            if messages[-1]["role"] == "user":
                yield TextDelta("One moment. ")
                yield ToolCallRequest(id=f"t{len(messages)}", name="look", arguments={}, raw="")
            else:
                yield TextDelta("Found it. ")
                await trio.sleep(0.2)
                yield TextDelta("Is there anything else?")

    async def answer(call: Call) -> None:
        call.converse(ChatNode(Finder(), tools=[look]))
        call.say("Welcome. ")
        call.say("How can I help?")

    async def asks(caller: Caller) -> None:
        await caller.at(1.0)
        await caller.says("where is it", takes_s=0.5)
        await caller.quiet()

    def interrupts(caller: Caller) -> None:
        if caller.call.answer is not None:
            assert caller.call.answer.interrupt().accepted

    report = interrupt_everywhere(answer, asks, interrupt=interrupts, twice=True, audio=audio)
    assert report.cut > 10
    assert report.drifted == 0
