"""Agents that the tests of calls share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

from bargein import Bridge, Call, Message
from bargein.events import AgentHandoff, AgentResponse, UserStartedSpeaking, UserStoppedSpeaking

Answer = Callable[[Call], Awaitable[None]]


def says(text: str) -> object:
    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content=text)

    return generate


def routes(bridge: Bridge, generate: object) -> None:
    """The usual chain of an agent that answers only while it has the floor."""
    (
        bridge.on(UserStoppedSpeaking, where=lambda m: bridge.has_floor)
        .interrupt_on(UserStartedSpeaking)
        .stream(generate)
        .broadcast()
    )


def two_agents(first: object, second: object = None) -> Answer:
    async def answer(call: Call) -> None:
        routes(call.bridge(name="front"), first)
        desk = call.bridge(name="desk")
        routes(desk, second or says("Desk."))
        desk.on(AgentHandoff, target="desk").stream(says("This is the desk.")).broadcast()

    return answer
