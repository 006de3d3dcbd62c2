"""A chain may name the event of a verb in a rule; the verb does all that it does without."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from bargein import Call, ChatNode, ConversationContext, Interruption, Message, ReasoningNode
from bargein.events import (
    AgentResponse,
    ControlRequested,
    EmergencyStop,
    InputReturned,
    ToolResult,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import shield, tool

VERBS = ["emergency_stop", "cancel"]


class Counts(ReasoningNode):
    """Counts for three seconds."""

    async def process_context(self, context: ConversationContext) -> AsyncIterator[AgentResponse]:
        for number in ("one, ", "two, ", "three."):
            yield AgentResponse(content=number)
            await trio.sleep(1)


async def answer(call: Call) -> None:
    node = Counts()
    chain = call.bridge(node).on(UserStoppedSpeaking)
    chain = chain.interrupt_on([UserStartedSpeaking, EmergencyStop, ControlRequested])
    chain.stream(node.generate).broadcast()


@pytest.mark.parametrize("audio", [True, False])
@pytest.mark.parametrize("verb", VERBS)
async def test_the_receipt_names_the_answer(autojump_clock, verb: str, audio: bool):
    """What a rule would have cut is what the verb has cut."""
    async with open_call(answer, audio=audio) as caller:
        await caller.says("count", takes_s=0.5)
        await caller.at(1)
        receipt = getattr(caller.call.handle, verb)()
        assert (receipt.accepted, receipt.answer, receipt.phase) == (
            True,
            1,
            "speaking" if audio else "text",
        )
        await receipt.settled


@pytest.mark.parametrize("audio", [True, False])
@pytest.mark.parametrize("event", [EmergencyStop(), ControlRequested(verb="cancel")])
async def test_what_waits_is_given_back(autojump_clock, event: object, audio: bool):
    """No rule forgets the words of the user before the verb can give them back."""
    async with open_call(answer, audio=audio) as caller:
        await caller.says("count", takes_s=0.5)
        await caller.at(1)
        caller.call.handle.send_input("and then?")
        caller.publish(event)
        await caller.quiet()
        assert [returned.content for returned in caller.events(InputReturned)] == ["and then?"]


async def test_a_tool_is_told_of_the_verb(autojump_clock):
    """An emergency stop ends a tool that a voice would have left alone."""

    @tool(policy=shield(60))
    async def pay() -> str:
        """Pay."""
        await trio.sleep(10)
        return "paid"

    async def pays(call: Call) -> None:
        node = ChatNode(ScriptedModel(calls("pay")), tools=[pay])
        chain = call.bridge(node).on(UserStoppedSpeaking).interrupt_on(EmergencyStop)
        chain.stream(node.generate).broadcast()

    async with open_call(pays) as caller:
        await caller.says("pay", takes_s=0.5)
        await caller.at(1)
        receipt = caller.call.handle.emergency_stop()
        assert [stopped.tool for stopped in receipt.stopped] == ["pay"]
        await receipt.settled
        [result] = caller.events(ToolResult)
    assert (result.outcome, result.ran_s) == ("effect_unknown", 0.5)


@pytest.mark.parametrize("verb", VERBS)
async def test_the_handler_of_the_rule_is_told(autojump_clock, verb: str):
    """Of several handlers it is that of the rule which names the event."""
    told: list[tuple[str, object]] = []

    def note(name: str, message: Message | None, interruption: Interruption) -> None:
        assert message is not None
        told.append((name, type(message.event)))

    async def notes(call: Call) -> None:
        node = Counts()
        chain = call.bridge(node).on(UserStoppedSpeaking)
        chain = chain.interrupt_on(UserStartedSpeaking, lambda m, i: note("voice", m, i))
        chain = chain.interrupt_on(
            [EmergencyStop, ControlRequested], lambda m, i: note("verb", m, i)
        )
        chain.stream(node.generate).broadcast()

    async with open_call(notes) as caller:
        await caller.says("count", takes_s=0.5)
        await caller.at(1)
        await getattr(caller.call.handle, verb)().settled
        await caller.quiet()
    event = EmergencyStop if verb == "emergency_stop" else ControlRequested
    assert told == [("verb", event)]
