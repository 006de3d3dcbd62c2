"""What the caller says while the floor is passed on is answered by whoever gets it, once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import trio
import trio.testing

from bargein import Bridge, Call, ChatNode, Message
from bargein.events import (
    AgentHandoff,
    AgentResponse,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import Caller, ScriptedModel, open_call

Where = Callable[[Message], bool]


class Agent:
    """Answers each turn with its name and the last words; the front desk hands over the first."""

    def __init__(self, name: str, hands_over_to: str = "", thinks_s: float = 1.0) -> None:
        self.name = name
        self.hands_over_to = hands_over_to
        self.thinks_s = thinks_s
        self.last = ""
        self.answered: list[str] = []

    def hear(self, message: Message) -> str:
        return message.event.content

    async def generate(self, said: str) -> AsyncIterator[Any]:
        self.answered.append(said)
        await trio.sleep(self.thinks_s)
        if self.hands_over_to:
            yield AgentHandoff(target=self.hands_over_to)
        yield AgentResponse(content=f"{self.name}: {said}.")


def places(call: Call, *agents: Agent, only_heard: bool = True) -> None:
    for agent in agents:
        place = call.bridge(agent, name=agent.name)
        place.on(
            UserTranscriptionReceived, where=_heard(place) if only_heard else None
        ).interrupt_on(UserStartedSpeaking).map(agent.hear).stream(agent.generate).broadcast()


def _heard(place: Bridge) -> Where:
    return lambda message: place.has_floor


def types(caller: Caller, *texts: str) -> None:
    for text in texts:
        caller.publish(UserTranscriptionReceived(content=text))


@pytest.mark.parametrize("audio", [True, False], ids=["spoken", "typed"])
async def test_the_new_agent_answers_what_waited_behind_the_old_one(
    autojump_clock: trio.testing.MockClock, audio: bool
) -> None:
    """In order, and the old one, whom nobody hears, does not."""
    front, desk = Agent("front", hands_over_to="desk"), Agent("desk")

    async def answer(call: Call) -> None:
        places(call, front, desk)

    async with open_call(answer, audio=audio) as caller:
        types(caller, "one", "two", "three")
        await caller.quiet()
        assert (front.answered, desk.answered) == (["one"], ["two", "three"])
        assert caller.heard.split("\n") == ["desk: two.", "desk: three."]


async def test_what_an_outsider_hands_over_takes_along_what_waits(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The app's own code, too, passes on what waits behind the agent that it silences."""
    front, desk = Agent("front"), Agent("desk")

    async def answer(call: Call) -> None:
        places(call, front, desk)

    async with open_call(answer) as caller:
        types(caller, "one", "two")
        await caller.at(0.5)
        caller.call.hand_over("desk")
        await caller.quiet()
        assert (front.answered, desk.answered) == (["one"], ["one", "two"])
        assert caller.heard.split("\n") == ["desk: one.", "desk: two."]


@pytest.mark.parametrize(("at_s", "again"), [(1.4, False), (1.0, True)], ids=["heard", "unheard"])
async def test_the_new_agent_answers_what_the_old_one_had_not_begun_to_say(
    autojump_clock: trio.testing.MockClock, at_s: float, again: bool
) -> None:
    """Words whose answer is cut before its first word are answered; those that got one are not."""
    front, desk = Agent("front", thinks_s=0.9), Agent("desk")

    async def answer(call: Call) -> None:
        places(call, front, desk)

    async with open_call(answer, chars_per_s=20) as caller:
        types(caller, "one")
        await caller.at(at_s)
        caller.call.hand_over("desk")
        await caller.quiet()
        assert desk.answered == ["one"] * again
        assert caller.heard == ("desk: one." if again else "front:")
        assert len(caller.call.history.interruptions) == 1


async def test_what_nobody_of_the_caller_asked_for_is_not_passed_on(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """An answer to another agent's event ends with the floor of who gave it."""
    greeted: list[str] = []

    async def answer(call: Call) -> None:
        for name in ("front", "desk"):
            place = call.bridge(name=name)

            async def greet(message: Message, name: str = name) -> AsyncIterator[Any]:
                greeted.append(f"{name}: {message.event.target}")
                await trio.sleep(1)
                yield AgentResponse(content=name)

            place.on(AgentHandoff, where=_heard(place)).stream(greet).broadcast()

    async with open_call(answer) as caller:
        call = caller.call
        call.publish(AgentHandoff(target="desk"), source="front")
        await caller.at(0.5)
        call.publish(AgentHandoff(target="front"), source="desk")
        await caller.quiet()
        assert greeted == ["desk: desk", "front: front"]


async def test_an_agent_that_listens_all_the_time_says_it_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """It had answered these words already, while nobody heard it."""
    front, desk = Agent("front", "desk", thinks_s=5.0), Agent("desk")

    async def answer(call: Call) -> None:
        places(call, front, desk, only_heard=False)

    async with open_call(answer) as caller:
        types(caller, "one", "two")
        await caller.quiet()
        assert (front.answered, desk.answered) == (["one"], ["one", "two", "two"])
        assert caller.heard == "desk: two."


async def test_an_agent_that_is_about_to_answer_answers_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Words that the new agent works on, or has in its own line, are not given to it again."""
    front, desk = Agent("front", "desk"), Agent("desk", thinks_s=3.0)

    async def answer(call: Call) -> None:
        places(call, front, desk, only_heard=False)

    async with open_call(answer) as caller:
        types(caller, "one", "two")
        await caller.quiet()
        assert (front.answered, desk.answered) == (["one"], ["one", "two"])
        assert caller.heard.split("\n") == ["desk: one.", "desk: two."]


@pytest.mark.parametrize("from_outside", [False, True], ids=["by itself", "from outside"])
async def test_a_greeting_that_answers_them_is_all(
    autojump_clock: trio.testing.MockClock, from_outside: bool
) -> None:
    """A model that has seen the words when it took over is not asked about them again."""
    model = ScriptedModel("Billing. Your invoice is paid.")
    billing = ChatNode(model)
    front = Agent("front", "billing")

    async def answer(call: Call) -> None:
        places(call, front)
        place = call.bridge(billing, name="billing")
        arrives = place.on(AgentHandoff, target="billing")
        speaks = place.on(UserTranscriptionReceived, where=_heard(place))
        for chain in (arrives, speaks):
            chain.interrupt_on(UserStartedSpeaking).stream(billing.generate).broadcast()

    async with open_call(answer) as caller:
        types(caller, "billing", "is my invoice paid?")
        if from_outside:
            await caller.at(0.5)
            caller.call.hand_over("billing")
        await caller.quiet()
        assert len(model.requests) == 1
        assert "is my invoice paid?" in str(model.requests[0].messages)
        assert caller.heard == "Billing. Your invoice is paid."


async def test_work_that_is_no_answer_stays(autojump_clock: trio.testing.MockClock) -> None:
    """What waits in a chain that says nothing is still done there."""
    kept: list[str] = []
    front, desk = Agent("front", "desk"), Agent("desk")

    async def keep(message: Message) -> None:
        await trio.sleep(2)
        kept.append(message.event.content)

    async def answer(call: Call) -> None:
        places(call, front, desk)
        front_place = call.bridges[0]
        front_place.on(UserTranscriptionReceived).map(keep)

    async with open_call(answer) as caller:
        types(caller, "one", "two")
        await caller.quiet()
        await trio.sleep(5)
        assert kept == ["one", "two"]
        assert desk.answered == ["two"]


async def test_a_turn_that_the_caller_ends_meanwhile(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Chains on the end of the caller's turn take it over just the same."""
    heard_by: list[str] = []

    async def answer(call: Call) -> None:
        for name in ("front", "desk"):
            place = call.bridge(name=name)

            async def generate(message: Message, name: str = name) -> AsyncIterator[Any]:
                heard_by.append(name)
                await trio.sleep(1)
                if name == "front":
                    yield AgentHandoff(target="desk")
                yield AgentResponse(content=f"{name} {len(heard_by)}")

            place.on(UserStoppedSpeaking, where=_heard(place)).stream(generate).broadcast()

    async with open_call(answer) as caller:
        await caller.says("put me through")
        await caller.says("is it paid?", at_s=caller.now_s + 0.2, takes_s=0.3)
        await caller.quiet()
        assert heard_by == ["front", "desk"]
        assert caller.heard == "desk 2"


async def test_two_hand_overs_in_one_step(autojump_clock: trio.testing.MockClock) -> None:
    """Whoever has the floor in the end answers."""
    front, desk, billing = Agent("front"), Agent("desk"), Agent("billing")

    async def answer(call: Call) -> None:
        places(call, front, desk, billing)
        on = call.bridge(name="switch", is_agent=False).on(AgentHandoff, target="desk")
        on.map(lambda message: AgentHandoff(target="billing")).broadcast()

    async with open_call(answer) as caller:
        types(caller, "one", "two")
        await caller.at(0.5)
        caller.call.hand_over("desk")
        await caller.quiet()
        assert [agent.answered for agent in (front, desk, billing)] == [["one"], [], ["one", "two"]]
        assert caller.heard.split("\n") == ["billing: one.", "billing: two."]


async def test_a_hand_over_while_paused(autojump_clock: trio.testing.MockClock) -> None:
    """The new agent stands still as well, and answers once the call goes on."""
    front, desk = Agent("front"), Agent("desk")

    async def answer(call: Call) -> None:
        places(call, front, desk)

    async with open_call(answer) as caller:
        types(caller, "one", "two")
        await caller.at(0.5)
        caller.call.handle.pause()
        caller.call.hand_over("desk")
        types(caller, "three")
        await trio.sleep(10)
        assert (front.answered, desk.answered) == (["one"], [])
        assert caller.call.current_state == "paused"
        caller.call.handle.resume()
        await caller.quiet()
        assert (front.answered, desk.answered) == (["one"], ["one", "two", "three"])
        assert caller.heard.split("\n") == ["desk: one.", "desk: two.", "desk: three."]
