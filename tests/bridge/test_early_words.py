"""What the caller says while ``answer()`` still opens its tools is kept and answered."""

from __future__ import annotations

import pytest
import trio

from bargein import Call, ChatNode
from bargein.events import (
    AgentResponse,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import Caller, ScriptedModel, open_call


def says(caller: Caller, text: str) -> None:
    """Publish a whole turn of the caller."""
    caller.publish(UserStartedSpeaking())
    caller.publish(UserTranscriptionReceived(content=text))
    caller.publish(UserStoppedSpeaking())


@pytest.mark.parametrize("turns", [1, 3])
async def test_a_turn_before_the_first_chain_is_answered(autojump_clock, turns):
    """However many turns: one answer, as soon as the agent is there, to all that was said."""
    model = ScriptedModel("A latte, right away.", then="Yes.")

    async def answer(call: Call) -> None:
        await trio.sleep(5)  # opens its tools
        call.converse(ChatNode(model))

    async with open_call(answer, audio=False) as caller:
        await caller.at(1)
        for turn in range(turns):
            says(caller, f"latte {turn}")
            await trio.sleep(0.5)
        await caller.at(4.9)
        assert model.requests == []
        await caller.at(6)
        assert caller.heard == "A latte, right away."
        assert f"latte {turns - 1}" in model.requests[0].last_text
        assert len(model.requests) == 1
        says(caller, "and a tea")
        await caller.at(7)
        assert len(model.requests) == 2


async def test_chains_of_words_get_them_too(autojump_clock):
    """A chain on transcripts gets each of them once, also one that came before another chain."""
    got: list[str] = []

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        await trio.sleep(2)
        bridge.on(UserTranscriptionReceived).map(lambda m: got.append(m.event.content))
        await trio.sleep(2)
        turns = bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        turns.map(lambda m: AgentResponse(content=f"{len(got)} words")).broadcast()

    async with open_call(answer, audio=False) as caller:
        await caller.at(3)
        says(caller, "one")
        await caller.at(10)
        assert got == ["one"]
        assert caller.heard == "1 words"


async def test_while_the_caller_speaks_on_nothing_is_answered(autojump_clock):
    """A turn that has begun by then is answered at its end, together with the one before."""
    model = ScriptedModel("Both, right away.")

    async def answer(call: Call) -> None:
        await trio.sleep(5)
        call.converse(ChatNode(model))

    async with open_call(answer, audio=False) as caller:
        await caller.at(1)
        says(caller, "a latte")
        await caller.at(4.5)
        caller.publish(UserStartedSpeaking())
        await caller.at(6)
        assert model.requests == []
        caller.publish(UserTranscriptionReceived(content="and a tea"))
        caller.publish(UserStoppedSpeaking())
        await caller.at(8)
        assert caller.heard == "Both, right away."


async def test_a_later_chain_answers_no_old_turn(autojump_clock):
    """A turn that an answering chain has seen is its own affair."""

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        bridge.on(UserStoppedSpeaking).map(lambda m: AgentResponse(content="One.")).broadcast()
        await trio.sleep(5)
        bridge.on(UserStoppedSpeaking).map(lambda m: AgentResponse(content="Two.")).broadcast()

    async with open_call(answer, audio=False) as caller:
        await caller.at(1)
        says(caller, "a latte")
        await caller.at(10)
        assert caller.heard == "One."
