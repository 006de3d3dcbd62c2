"""A verb reaches what still waits in an async sink after the chain is over."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from bargein import Call
from bargein.events import AgentResponse, UserStartedSpeaking, UserStoppedSpeaking
from bargein.testing import open_call

PIECES = 200


async def open_and_fill(got, caller, protected=False):
    """Have an answer whose pieces an async sink takes one a second."""

    async def slow(message):
        got.append(message.event.content)
        await trio.sleep(1)

    caller.call.router.add_sink(slow, AgentResponse, limit=PIECES)
    caller.publish(UserStoppedSpeaking())
    await caller.at(10.5)
    assert caller.call.handle.snapshot().state == "idle"
    assert len(got) == 11


async def answer(call: Call) -> None:
    async def generate(message):
        for number in range(PIECES):
            yield AgentResponse(content=f"{number} ")

    chain = call.bridge(name="agent").on(UserStoppedSpeaking)
    chain.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()


@pytest.mark.parametrize("verb", ["cancel", "barge_in", "redirect", "emergency_stop", "shutdown"])
async def test_a_verb_drops_what_waits(autojump_clock, verb):
    """Not one of the waiting pieces is delivered after it, and its receipt settles."""
    got: list[str] = []
    async with open_call(answer, audio=False) as caller:
        await open_and_fill(got, caller)
        handle = caller.call.handle
        assert not handle.describe(verb).endswith("nothing is running.")
        if verb == "redirect":
            model_says = len(got)
            receipt = handle.redirect("something else")
            await trio.sleep(5)
            assert got[model_says : model_says + 2] == ["0 ", "1 "]  # the next answer's
            return
        receipt = getattr(handle, verb)()
        assert receipt.accepted
        await receipt.settled
        await trio.sleep(300)
        assert len(got) == 11


@pytest.mark.parametrize("verb", ["cancel", "barge_in"])
async def test_when_all_is_delivered_there_is_nothing_to_do(autojump_clock, verb):
    """Once the sink has taken everything the verb does nothing, and says so."""
    got: list[str] = []
    async with open_call(answer, audio=False) as caller:
        await open_and_fill(got, caller)
        await trio.sleep(300)
        assert len(got) == PIECES
        handle = caller.call.handle
        assert handle.describe(verb).endswith("nothing is running.")
        assert getattr(handle, verb)().reason == "nothing is running"
