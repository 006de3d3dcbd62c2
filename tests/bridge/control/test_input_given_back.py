"""Input that waits behind an answer that is stopped is given back, and nothing else is."""

from __future__ import annotations

import pytest
import trio

from bargein import Call, open_agent
from bargein.events import (
    InputReturned,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import open_call
from tests.bridge.control.counting import Counter

# --- input that waits


@pytest.mark.parametrize("verb", ["cancel", "emergency_stop"])
async def test_input_that_waits_is_given_back(autojump_clock, verb):
    """What was said behind an answer is told, is in the receipt, and nobody answers it later."""
    node = Counter()
    async with open_agent(node) as handle:
        messages = handle.subscribe()
        handle.send_input("count")
        await trio.sleep(1.5)
        handle.send_input("and then?")
        handle.send_input("and after that?")
        await trio.sleep(0.5)
        receipt = getattr(handle, verb)()
        assert receipt.returned == ("and then?", "and after that?")
        await trio.sleep(20)
        assert node.begun == 1
        assert "and then?" not in str(node.context.as_chat())
        handle.send_input("and then?")
        await trio.sleep(20)
        assert node.begun == 2
        assert str(node.context.as_chat()).count("and then?") == 1
        handle.shutdown()
        seen = [message.event async for message in messages]
    assert [e.content for e in seen if isinstance(e, InputReturned)] == [
        "and then?",
        "and after that?",
    ]


async def test_what_is_being_answered_is_not_given_back(autojump_clock):
    """The words of the turn itself stay in the conversation; there is nothing to give back."""
    node = Counter()
    async with open_agent(node) as handle:
        handle.send_input("count")
        await trio.sleep(1.5)
        assert handle.cancel().returned == ()
        assert "count" in str(node.context.as_chat())


async def test_input_while_paused_is_given_back(autojump_clock):
    """A cancel of an answer that is paused gives back what came meanwhile."""
    node = Counter()
    async with open_agent(node) as handle:
        handle.send_input("count")
        await trio.sleep(1.5)
        handle.pause()
        handle.send_input("and then?")
        assert handle.cancel().returned == ("and then?",)
        await trio.sleep(20)
        assert node.begun == 1


async def test_a_shutdown_gives_back_what_waits(autojump_clock):
    """Nobody will answer it any more: it is told while the call lives, and is in the receipt."""
    node = Counter()
    async with open_agent(node) as handle:
        messages = handle.subscribe()
        handle.send_input("count")
        await trio.sleep(1.5)
        handle.send_input("and then?")
        receipt = handle.shutdown()
        assert receipt.returned == ("and then?",)
        await receipt.settled
        seen = [message.event async for message in messages]
    assert [e.content for e in seen if isinstance(e, InputReturned)] == ["and then?"]
    assert node.begun == 1


@pytest.mark.parametrize("verb", ["cancel", "emergency_stop", "shutdown"])
async def test_words_that_are_a_trigger_themselves_are_given_back(autojump_clock, verb):
    """A chain that answers each transcript leaves none out."""
    node = Counter()

    async def answer(call: Call) -> None:
        chain = call.bridge(node).on(UserTranscriptionReceived)
        chain.interrupt_on(UserStartedSpeaking).stream(node.generate).broadcast()

    async with open_call(answer, audio=False) as caller:
        for text in ("count", "and then?", "and after that?"):
            caller.publish(UserTranscriptionReceived(content=text))
        await caller.at(0.5)
        receipt = getattr(caller.call.handle, verb)()
        assert receipt.returned == ("and then?", "and after that?")


def both_listen(call: Call, heard: Counter, unheard: Counter) -> None:
    """Let two agents answer each turn, of which the caller hears the first."""
    for node in (heard, unheard):
        turns = call.bridge(node).on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        turns.stream(node.generate).broadcast()


@pytest.mark.parametrize("verb", ["cancel", "emergency_stop", "shutdown"])
async def test_words_that_are_answered_unheard_are_given_back(autojump_clock, verb):
    """An agent without the floor that is quicker answers nobody."""
    heard, unheard = Counter(20), Counter(1)

    async def answer(call: Call) -> None:
        both_listen(call, heard, unheard)

    async with open_call(answer, audio=False) as caller:
        for text in ("count", "and then?"):
            caller.call.handle.send_input(text)
        await caller.at(5)
        assert (heard.begun, unheard.begun) == (1, 2)
        assert getattr(caller.call.handle, verb)().returned == ("and then?",)


@pytest.mark.parametrize("verb", ["emergency_stop", "shutdown"])
async def test_what_waits_for_an_agent_without_the_floor_is_given_back(autojump_clock, verb):
    """The verbs that end its work give back what only it would have taken in."""
    listens = Counter()

    async def answer(call: Call) -> None:
        call.bridge(name="front")
        both_listen(call, listens, Counter())

    async with open_call(answer, audio=False) as caller:
        for text in ("count", "and then?"):
            caller.call.handle.send_input(text)
        await caller.at(0.5)
        receipt = getattr(caller.call.handle, verb)()
        assert receipt.returned == ("count", "and then?")
        assert [e.content for e in caller.events(InputReturned)] == list(receipt.returned)


@pytest.mark.parametrize("verb", ["emergency_stop", "shutdown"])
async def test_what_was_answered_aloud_is_not_given_back(autojump_clock, verb):
    """It still waits for an agent that nobody hears; the caller has the answer."""
    heard, unheard = Counter(1), Counter(20)

    async def answer(call: Call) -> None:
        both_listen(call, heard, unheard)

    async with open_call(answer, audio=False) as caller:
        for text in ("count", "and then?"):
            caller.call.handle.send_input(text)
        await caller.at(5)
        assert (heard.begun, unheard.begun) == (2, 1)
        assert getattr(caller.call.handle, verb)().returned == ()


async def test_what_the_new_agent_answers_already_is_not_given_back(autojump_clock):
    """It began before it had the floor, and is heard now."""
    old, new = Counter(20), Counter(6)

    async def answer(call: Call) -> None:
        both_listen(call, old, new)

    async with open_call(answer, audio=False) as caller:
        for text in ("count", "and then?"):
            caller.call.handle.send_input(text)
        await caller.at(8)
        assert (old.begun, new.begun) == (1, 2)
        caller.call.hand_over(caller.call.bridges[1])
        await caller.at(9)
        assert caller.call.handle.cancel().returned == ()
