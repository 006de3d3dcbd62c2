"""Answers that several chains of an agent make, one out of what the other gave."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal

import pytest
import trio

from bargein import Call, Event, Message
from bargein.events import (
    AgentResponse,
    AnswerEnded,
    DTMFInput,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import Caller, open_call


class Draft(Event):
    type: Literal["tests.chains.draft"] = "tests.chains.draft"
    step: int


async def drafts(call: Call) -> None:
    """Write a draft at once; three more chains work on it for a second each before it is said."""
    bridge = call.bridge(name="agent")

    async def write(message: Message) -> AsyncIterator[object]:
        yield Draft(step=1)

    async def work(message: Message) -> object:
        await trio.sleep(1)
        step = message.event.step + 1
        return Draft(step=step) if step < 4 else AgentResponse(content="Here it is.")

    turns = bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
    turns.stream(write).broadcast()
    bridge.on(Draft, overlap="concurrent").map(work).broadcast()


def outcomes(caller: Caller) -> list[str]:
    return [event.outcome for event in caller.events(AnswerEnded)]


def outstanding(caller: Caller) -> int:
    """How many runs are at work, or kept because something of theirs is outstanding."""
    return sum(len(route.runs) for route in caller.call.router.routes)


@pytest.mark.parametrize("audio", [True, False], ids=["audio", "text"])
@pytest.mark.parametrize("at_s", [0.5, 1.5, 2.5])
async def test_an_answer_is_cut_whichever_chain_works_on_it(autojump_clock, audio, at_s):
    """The rule of the first chain holds for the answer, also once that chain has ended."""
    async with open_call(drafts, audio=audio) as caller:
        await caller.at(0)
        before = outstanding(caller)
        caller.publish(UserStoppedSpeaking())
        await caller.at(at_s)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(10)
        assert caller.heard == ""
        assert outcomes(caller) == ["interrupted"]
        [record] = caller.call.history.interruptions
        assert (record.verb, record.at_s) == ("barge_in", at_s)
        assert outstanding(caller) == before


@pytest.mark.parametrize("audio", [True, False], ids=["audio", "text"])
async def test_an_answer_that_nothing_cuts_leaves_nothing(autojump_clock, audio):
    """Another event cuts nothing; once all is heard no run is kept, and the next turn works."""
    async with open_call(drafts, audio=audio) as caller:
        await caller.at(0)
        before = outstanding(caller)
        for _ in range(2):
            caller.publish(UserStoppedSpeaking())
            await trio.sleep(1.5)
            caller.publish(DTMFInput(button="1"))
            await trio.sleep(10)
            assert outstanding(caller) == before
        assert caller.heard == "Here it is.\nHere it is."
        assert outcomes(caller) == ["completed"] * 2
        assert not caller.call.history.interruptions
