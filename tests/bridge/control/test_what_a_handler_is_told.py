"""What a handler of an interruption is told of the answer that was cut."""

from __future__ import annotations

from collections.abc import AsyncIterator

import trio

from bargein import Call, ChatNode, Interruption, Message
from bargein.events import (
    AgentResponse,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import tool

told: list[Interruption] = []


async def keep(message: Message, interruption: Interruption) -> None:
    told.append(interruption)


async def test_what_was_generated_and_heard(autojump_clock):
    """The words up to the cut, also when all was generated and only the voice was cut."""
    told.clear()

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="one two three four")

    async def answer(call: Call) -> None:
        route = call.bridge(name="agent").on(UserStoppedSpeaking)
        route.interrupt_on(UserStartedSpeaking, handler=keep).stream(generate).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(0.9)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(1)
        (interruption,) = told
        assert interruption.generated == "one two three four"
        assert interruption.heard.strip() == caller.heard.strip() == "one two"
        assert interruption.tools == ()


async def test_the_tools_and_their_outcomes(autojump_clock):
    """Each tool of the answer: what had ended, and what was cut."""
    told.clear()

    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    @tool
    async def book() -> str:
        """Book."""
        await trio.sleep(5)
        return "booked"

    model = ScriptedModel(["Let me see. ", calls("look"), calls("book")])
    node = ChatNode(model, tools=[look, book])

    async def answer(call: Call) -> None:
        route = call.bridge(node).on(UserStoppedSpeaking)
        route.interrupt_on(UserStartedSpeaking, handler=keep).stream(node.generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        caller.publish(UserTranscriptionReceived(content="book it"))
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(1)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(1)
        (interruption,) = told
        assert interruption.heard == interruption.generated == "Let me see. "
        assert [(one.name, one.outcome) for one in interruption.tools] == [
            ("look", "completed"),
            ("book", "effect_unknown"),
        ]
