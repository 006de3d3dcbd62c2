"""Chains that are as they should be, with the type that each step gives."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Generator, Iterator
from typing import Any, Literal, assert_type

import trio

from bargein import Bridge, Call, Event, Interruption, Message, ReasoningNode, Run
from bargein.events import (
    AgentError,
    AgentResponse,
    DTMFInput,
    EmergencyStop,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.routes import Route


class OrderPlaced(Event):
    type: Literal["order.placed"] = "order.placed"
    drink: str
    cups: int = 1


Order = Message[OrderPlaced]


def confirm(message: Order) -> AgentResponse:
    return AgentResponse(content=f"{message.event.cups} {message.event.drink}, coming up.")


def confirm_large(message: Order) -> AgentResponse | None:
    return confirm(message) if message.event.cups > 2 else None


async def look_up(message: Order) -> AgentResponse | None:
    await trio.sleep(1)
    return confirm(message)


def cups(message: Order) -> Generator[int, None, None]:
    yield from range(message.event.cups)


def each_cup(message: Order) -> Iterator[int]:
    yield from range(message.event.cups)


async def words(message: Order) -> AsyncIterator[str]:
    yield message.event.drink


async def each_word(message: Order) -> AsyncIterable[str]:
    yield message.event.drink


async def answer(message: Order) -> AsyncGenerator[AgentResponse | AgentError, None]:
    yield confirm(message)


@trio.as_safe_channel
async def chimes(message: Order) -> AsyncGenerator[AgentResponse, None]:
    yield confirm(message)


def drinks(message: Order) -> list[str]:
    return [message.event.drink]


async def search(message: Order) -> list[str]:
    return [message.event.drink]


async def open_hours() -> str:
    return "We are open."


async def by_sentence(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    async for piece in pieces:
        yield piece


def say(text: str) -> AgentResponse:
    return AgentResponse(content=text)


def bare(message: Message) -> str:
    return str(message.event.whatever)


def what_comes_out(bridge: Bridge) -> None:
    """Each kind of function gives the next stage what is inside of its result."""
    chain = bridge.on(OrderPlaced)
    assert_type(chain, Route[Message[OrderPlaced]])
    assert_type(chain.map(confirm), Route[AgentResponse])
    assert_type(chain.map(confirm_large), Route[AgentResponse])
    assert_type(chain.map(look_up), Route[AgentResponse])
    assert_type(chain.stream(each_cup), Route[int])
    assert_type(chain.map(drinks), Route[list[str]])
    assert_type(chain.map(bare), Route[str])
    assert_type(chain.map(open_hours), Route[str])
    assert_type(chain.stream(confirm), Route[AgentResponse])
    assert_type(chain.stream(look_up), Route[AgentResponse])
    assert_type(chain.stream(cups), Route[int])
    assert_type(chain.stream(words), Route[str])
    assert_type(chain.stream(each_word), Route[str])
    assert_type(chain.stream(answer), Route[AgentResponse | AgentError])
    assert_type(chain.stream(chimes), Route[AgentResponse])
    assert_type(chain.stream(drinks), Route[str])
    assert_type(chain.stream(search), Route[str])
    assert_type(chain.stream(open_hours), Route[str])
    assert_type(chain.stream([1, 2]), Route[int])
    assert_type(chain.stream(range(3)), Route[int])


def one_after_the_other(bridge: Bridge) -> None:
    """A stage takes what the one before it gives, and steps without a function keep it."""
    chain = bridge.on(OrderPlaced).stream(words).through(by_sentence).buffer(2).timeout(5)
    assert_type(chain, Route[str])
    assert_type(chain.filter(lambda text: text.isupper()), Route[str])
    assert_type(chain.map(say).broadcast(), Route[AgentResponse])
    chain.map(lambda text: text.upper()).map(lambda text: say(text)).broadcast().on(DTMFInput)


def lambdas(bridge: Bridge) -> None:
    """A lambda knows what it gets, and the next stage what it gives."""
    log: list[str] = []
    assert_type(bridge.on(OrderPlaced).map(lambda m: m.event.drink), Route[str])
    assert_type(bridge.on(OrderPlaced).map(lambda m: m.event.drink).map(len), Route[int])
    assert_type(bridge.on(OrderPlaced).map(lambda: 1), Route[int])
    bridge.on(OrderPlaced).map(lambda m: log.append(m.event.drink))
    bridge.on(OrderPlaced, where=lambda m: m.event.cups > 2).map(confirm)
    bridge.on(OrderPlaced, cups=3, drink=lambda drink: drink in ("tea", "mate"))


def several_classes(bridge: Bridge) -> None:
    """A tuple of up to four classes is their union; so is a list that says what it holds."""
    two = bridge.on((OrderPlaced, DTMFInput))
    assert_type(two, Route[Message[OrderPlaced | DTMFInput]])
    four = bridge.on((OrderPlaced, DTMFInput, AgentError, UserStoppedSpeaking))
    assert_type(four, Route[Message[OrderPlaced | DTMFInput | AgentError | UserStoppedSpeaking]])
    bridge.on((OrderPlaced, DTMFInput), where=lambda m: m.event.type == "user.dtmf")
    listed: list[type[OrderPlaced | DTMFInput]] = [OrderPlaced, DTMFInput]
    assert_type(bridge.on(listed), Route[Message[OrderPlaced | DTMFInput]])
    bridge.on([OrderPlaced, DTMFInput]).map(lambda m: m.event.type)


def anything(bridge: Bridge) -> None:
    """An alias or a function leaves open what comes."""
    assert_type(bridge.on("user.*"), Route[Message[Any]])
    assert_type(bridge.on(lambda m: m.source == "till"), Route[Message[Any]])
    bridge.on([OrderPlaced, "user.dtmf"]).map(lambda m: m.event.type)
    bridge.on((OrderPlaced, "user.dtmf"), where=lambda m: m.event.type)
    bridge.on(("user.*", OrderPlaced)).map(lambda m: m.event.type)
    bridge.on((OrderPlaced, DTMFInput, lambda m: m.at_s > 2), where=bare)
    bridge.on({OrderPlaced, DTMFInput, AgentError}, where=bare)
    aliases: tuple[str, ...] = ("user.*", "agent.*")
    bridge.on(aliases).interrupt_on([*aliases], on_any_cut)


class Watcher:
    def cut(self, message: Message | None, interruption: Interruption | None = None) -> None:
        print(message, interruption)


def on_cut(message: Message[UserStartedSpeaking] | None, interruption: Interruption) -> None:
    print(message, interruption.heard)


async def on_any_cut(message: Message) -> None:
    print(message.event)


def interrupts(bridge: Bridge) -> None:
    """The event may be given in every form, with a handler of each kind behind it."""
    log: list[str] = []
    chain = bridge.on(OrderPlaced)
    assert_type(chain.interrupt_on(UserStartedSpeaking, on_cut), Route[Message[OrderPlaced]])
    chain.interrupt_on(UserStartedSpeaking, on_any_cut, source="caller").stream(words)
    chain.interrupt_on(UserStartedSpeaking, Watcher().cut)
    chain.interrupt_on((UserStartedSpeaking, EmergencyStop), on_any_cut)
    chain.interrupt_on([UserStartedSpeaking, EmergencyStop], handler=on_any_cut)
    chain.interrupt_on("user.*", lambda m, i: log.append(i.heard))
    chain.interrupt_on(UserStartedSpeaking, lambda m, i: log.append(i.heard))
    chain.interrupt_on(DTMFInput, lambda m: log.append(m.event.button), source="caller")
    chain.interrupt_on(DTMFInput, handler=lambda: log.append("cut"), button="*")
    chain.interrupt_on((UserStartedSpeaking, DTMFInput), lambda m: log.append(m.event.type))
    chain.suspend_on(DTMFInput, lambda m, i: log.append(f"{m.event.button}: {i.heard}"))
    chain.suspend_on(UserStartedSpeaking, None)
    chain.suspend_on(UserStartedSpeaking, lambda: log.append("suspended"))
    chain.interrupt_on(lambda m: m.source == "till", lambda: log.append("cut"))
    chain.interrupt_on(DTMFInput, condition=lambda m: m.event.button == "*")
    chain.interrupt_on(DTMFInput, button="*")
    chain.suspend_on(DTMFInput, on_any_cut, button="1").resume_on(DTMFInput, button="2")
    chain.pause_on((UserStartedSpeaking, DTMFInput)).resume_on("user.stopped_speaking")


class Barista(ReasoningNode):
    async def process_context(self, context: object) -> AsyncIterator[AgentResponse]:
        yield AgentResponse(content="One moment.")

    def on_interrupt_generate(self, message: Message | None) -> None:
        print(self.current_response)


async def answer_call(call: Call) -> None:
    barista = Barista()
    bridge = call.bridge(barista)
    (
        bridge.on(UserStoppedSpeaking)
        .interrupt_on(UserStartedSpeaking, barista.on_interrupt_generate)
        .stream(barista.generate)
        .broadcast()
    )
    assert_type(call.publish(OrderPlaced(drink="tea")), Message[OrderPlaced])
    assert_type(bridge.publish(OrderPlaced(drink="tea")).event, OrderPlaced)


def run_of(message: Message[OrderPlaced]) -> Run | None:
    return message.run
