"""Mistakes in chains; each stands with what the type checkers call it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

from bargein import Bridge, Event, Interruption, Message
from bargein.events import AgentResponse, DTMFInput, UserStartedSpeaking


class OrderPlaced(Event):
    type: Literal["order.placed"] = "order.placed"
    drink: str
    cups: int = 1


def confirm(message: Message[OrderPlaced]) -> AgentResponse:
    # wrong: attr-defined, reportAttributeAccessIssue
    return AgentResponse(content=message.event.drnk)


async def words(message: Message[OrderPlaced]) -> AsyncIterator[str]:
    yield message.event.drink


async def by_sentence(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    async for piece in pieces:
        yield piece


def say(text: str) -> AgentResponse:
    return AgentResponse(content=text)


def three(message: Message, interruption: Interruption, more: int) -> None:
    print(message, interruption, more)


def of_a_key(message: Message[DTMFInput]) -> None:
    print(message.event.button)


async def slowly(message: Message[OrderPlaced]) -> bool:
    return message.event.cups > 2


def two(message: Message[OrderPlaced], more: int) -> int:
    return message.event.cups + more


def fields(bridge: Bridge) -> None:
    """A field that the event does not have."""
    order = bridge.on(OrderPlaced)
    # wrong: attr-defined, reportAttributeAccessIssue
    order.map(lambda m: m.event.drnk)
    # wrong: attr-defined, reportAttributeAccessIssue
    order.filter(lambda m: m.event.cpus > 2)
    # wrong: attr-defined, reportAttributeAccessIssue
    order.stream(words).map(lambda word: word.uper())
    # wrong: attr-defined, reportAttributeAccessIssue
    bridge.on(OrderPlaced, where=lambda m: m.event.cup > 2)
    # wrong: arg-type, return-value, union-attr, reportAttributeAccessIssue
    bridge.on((OrderPlaced, DTMFInput)).map(lambda m: m.event.drink)
    # wrong: attr-defined, reportAttributeAccessIssue
    order.interrupt_on(DTMFInput, condition=lambda m: m.event.key)
    # wrong: union-attr, reportAttributeAccessIssue
    bridge.on((OrderPlaced, DTMFInput), where=lambda m: m.event.drink)
    # wrong: union-attr, reportAttributeAccessIssue
    order.interrupt_on((OrderPlaced, DTMFInput), condition=lambda m: m.event.button)


def inputs(bridge: Bridge) -> None:
    """A stage that cannot take what the one before it gives."""
    # wrong: arg-type, reportArgumentType, reportCallIssue
    bridge.on(DTMFInput).map(confirm)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    bridge.on(OrderPlaced).map(say)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    bridge.on(OrderPlaced).stream(words).map(confirm)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    bridge.on(OrderPlaced).stream(words).map(say).map(say)
    # wrong: arg-type, reportArgumentType
    bridge.on(OrderPlaced).map(confirm).through(by_sentence)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    bridge.on((OrderPlaced, DTMFInput)).stream(words)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    bridge.on(OrderPlaced).map(two)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    bridge.on(OrderPlaced, where=of_a_key)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    bridge.on((OrderPlaced, DTMFInput), where=of_a_key)


def handlers(bridge: Bridge) -> None:
    """A handler that cannot be called, or that is told of another event."""
    order = bridge.on(OrderPlaced)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    order.interrupt_on(UserStartedSpeaking, three)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    order.interrupt_on([UserStartedSpeaking, DTMFInput], three)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    order.interrupt_on("user.*", handler=three)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    order.interrupt_on(UserStartedSpeaking, of_a_key)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    order.interrupt_on((UserStartedSpeaking, DTMFInput), of_a_key)
    # wrong: arg-type, reportArgumentType, reportCallIssue
    order.suspend_on(UserStartedSpeaking, three)


def lambdas_as_handlers(bridge: Bridge) -> None:
    """A field that the event or the interruption does not have; to mypy, behind one class only."""
    order = bridge.on(OrderPlaced)
    # wrong: attr-defined, reportAttributeAccessIssue
    order.interrupt_on(UserStartedSpeaking, lambda m: m.event.nope)
    # wrong: misc, arg-type, reportAttributeAccessIssue
    order.interrupt_on(UserStartedSpeaking, lambda m, i: i.herd)
    # wrong: misc, arg-type, reportAttributeAccessIssue
    order.interrupt_on(UserStartedSpeaking, handler=lambda m, i: m.event.nope)
    # wrong: attr-defined, reportAttributeAccessIssue
    order.suspend_on(UserStartedSpeaking, lambda m: m.event.nope)
    # wrong: misc, arg-type, reportAttributeAccessIssue
    order.suspend_on(UserStartedSpeaking, lambda m, i: i.herd)
    # wrong: misc, arg-type, reportArgumentType, reportCallIssue
    order.suspend_on(UserStartedSpeaking, lambda m, i, more: None)


def streams(bridge: Bridge, message: Message[OrderPlaced]) -> None:
    """What is no function and nothing to iterate again and again."""
    order = bridge.on(OrderPlaced)
    # wrong: call-overload, reportArgumentType, reportCallIssue
    order.stream(42)
    # wrong: call-overload, reportArgumentType, reportCallIssue
    order.stream("Good morning.")
    # wrong: call-overload, reportArgumentType, reportCallIssue
    order.stream(AgentResponse(content="Hello."))
    # wrong: call-overload, reportArgumentType, reportCallIssue
    order.stream(words(message))


def events(bridge: Bridge) -> None:
    """What is no event class."""
    # wrong: call-overload, reportArgumentType, reportCallIssue
    bridge.on(42)
    # wrong: call-overload, reportArgumentType, reportCallIssue
    bridge.on(OrderPlaced(drink="tea"))
    # wrong: arg-type, reportArgumentType, reportCallIssue
    bridge.on((OrderPlaced, 42))
    # wrong: arg-type, reportArgumentType
    bridge.on(OrderPlaced).pause_on(DTMFInput(button="1"))
