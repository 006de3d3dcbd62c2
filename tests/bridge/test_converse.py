"""call.converse(): one word for the chain that most agents begin with."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from bargein import Call, Message, RouteDefinitionError
from bargein.events import (
    AgentResponse,
    AgentSpeechCut,
    DTMFInput,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import open_call


class Teller:
    """Says the same three words each time it is asked."""

    name = "teller"

    async def generate(self, message: Message) -> AsyncIterator[AgentResponse]:
        yield AgentResponse(content="One two three. ")


async def test_it_is_short_for_the_usual_chain(autojump_clock):
    """The chain is printed as if it had been written."""

    async def answer(call: Call) -> None:
        teller = Teller()
        usual = call.bridge(Teller(), name="written").on(UserStoppedSpeaking)
        usual = usual.interrupt_on(UserStartedSpeaking).stream(teller.generate).broadcast()
        route = call.converse(teller)
        assert (str(route), route.source) == (str(usual), "teller")

    async with open_call(answer) as caller:
        assert not caller.events(AgentResponse)


async def test_it_answers_each_turn_and_is_cut_by_the_caller(autojump_clock):
    """What was heard before the caller spoke is kept, and the next turn is answered in full."""

    async def answer(call: Call) -> None:
        call.converse(Teller())

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.8)
        caller.publish(UserStartedSpeaking())
        assert caller.heard == "One two"
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard.endswith("One two three. ")


async def test_the_chain_can_be_written_further(autojump_clock):
    """A rule joins the chain that was returned, and ``.on()`` begins another of the same node."""
    keys: list[str] = []

    async def answer(call: Call) -> None:
        route = call.converse(Teller()).interrupt_on(DTMFInput, button="#")
        route.on(DTMFInput).map(lambda message: keys.append(message.event.button))

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.publish(DTMFInput(button="1"))
        await caller.at(0.8)
        caller.publish(DTMFInput(button="#"))
        await caller.quiet()
        assert keys == ["1", "#"]
        assert len(caller.events(AgentResponse)) == len(caller.events(AgentSpeechCut)) == 1


async def test_a_node_keeps_its_place(autojump_clock):
    """A node that call.bridge() was given already gets no second place and no other name."""

    async def answer(call: Call) -> None:
        teller = Teller()
        place = call.bridge(teller, name="storyteller")
        assert call.converse(teller).source == "storyteller"
        assert call.bridges == (place,)
        with pytest.raises(RouteDefinitionError, match="call, 'storyteller'; leave name= out"):
            call.converse(teller, name="another")

    async with open_call(answer, audio=False):
        pass


async def test_a_second_bridge_of_a_node_is_its_first(autojump_clock):
    """A node has one bridge in a call: whoever asks for it again gets the same one."""

    async def answer(call: Call) -> None:
        teller = Teller()
        call.converse(teller)
        place = call.bridge(teller)
        place.on(DTMFInput).interrupt_on(UserStartedSpeaking).stream(teller.generate).broadcast()
        assert [bridge for bridge in call.bridges if bridge.is_agent] == [place]
        with pytest.raises(RouteDefinitionError, match="call, 'teller'; leave name= out"):
            call.bridge(teller, name="another")
        with pytest.raises(RouteDefinitionError, match="'teller', with is_agent=True"):
            call.bridge(teller, is_agent=False)

    async with open_call(answer) as caller:
        caller.publish(DTMFInput(button="1"))
        await caller.quiet()
        assert caller.heard


async def test_a_node_that_has_left_a_call_may_answer_again(autojump_clock):
    """Its bridge has no chains any more, so nothing is said twice."""

    async def answer(call: Call) -> None:
        teller = Teller()
        first = call.converse(teller)
        call.bridge(teller).leave()
        assert str(call.converse(teller)) == str(first)
        with pytest.raises(RouteDefinitionError, match="answers the turns of this call already"):
            call.converse(teller)

    async with open_call(answer) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "One two three. "


@pytest.mark.parametrize("wrong", [Teller, Teller().generate, "teller", None, object()])
async def test_what_generates_nothing_is_refused(wrong, autojump_clock):
    """A class, a function or anything else is an error where it is written, and takes no place."""

    async def answer(call: Call) -> None:
        with pytest.raises(RouteDefinitionError, match=r"converse\(\) needs a node"):
            call.converse(wrong)
        assert call.bridges == ()
        await trio.lowlevel.checkpoint()

    async with open_call(answer, audio=False):
        pass
