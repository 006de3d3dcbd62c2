"""An agent without a prompt asks no model before anybody has spoken."""

from __future__ import annotations

import trio

from bargein import Call, ChatNode
from bargein.events import (
    AgentHandoff,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import ScriptedModel, open_call


async def test_an_agent_that_gets_the_floor_before_anybody_spoke_asks_nothing(autojump_clock):
    """It is silent, nothing fails, and the caller's first turn is answered."""
    model = ScriptedModel("Hello.")

    async def answer(call: Call) -> None:
        call.bridge(name="front")
        node = ChatNode(model)
        call.converse(node, name="desk")
        arrival = call.bridge(node).on(AgentHandoff).interrupt_on(UserStartedSpeaking)
        arrival.stream(node.generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        caller.call.hand_over("desk")
        await trio.sleep(1)
        assert model.requests == []
        assert caller.heard == ""
        caller.publish(UserTranscriptionReceived(content="hi"))
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        assert caller.heard == "Hello."
