"""The text of agents on its way to the caller and into the history; 10 characters a second."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio

from bargein import Call, Message
from bargein.events import (
    AgentGenerationComplete,
    AgentResponse,
    AgentSpeechCut,
    AgentSpeechSent,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import open_call


def agent(generate: object, **rule: object) -> object:
    async def answer(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking)
        chain.interrupt_on(UserStartedSpeaking, **rule).stream(generate).broadcast()

    return answer


async def test_text_from_outside_of_any_run_is_an_answer_of_its_own(autojump_clock):
    """What a bridge publishes by itself is said, in order, and completed at once."""

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        bridge.publish(AgentResponse(content="One."))
        bridge.publish(AgentResponse(content="Two."))

    async with open_call(answer, chars_per_s=10) as caller:
        await caller.quiet()
        assert caller.heard == "One.\nTwo."
        assert [e.answer for e in caller.events(AgentGenerationComplete)] == [1, 2]
        assert caller.now_s == pytest.approx(0.8)


async def test_text_that_comes_after_its_run_has_ended(autojump_clock):
    """A task that a node started goes on speaking: an answer of its own, voiced to its end."""

    async def later(call: Call) -> None:
        await trio.sleep(0.2)
        call.publish(AgentResponse(content=" And more."), source="agent")

    async def generate(message: Message) -> AsyncIterator[object]:
        caller.call.nursery.start_soon(later, caller.call)
        yield AgentResponse(content="Yes.")

    async with open_call(agent(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "Yes.\nAnd more."
        assert [e.content for e in caller.events(AgentGenerationComplete)] == ["Yes.", " And more."]


async def test_heard_words_are_told_once_each_and_in_order(autojump_clock):
    """The told words, joined, are what was heard; each at the time at which it was heard."""

    async def generate(message: Message) -> AsyncIterator[object]:
        for piece in ("One ", "two th", "ree"):
            yield AgentResponse(content=piece)

    async with open_call(agent(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        sent = [item for item in caller.received if isinstance(item.event, AgentSpeechSent)]
        assert [i.event.content for i in sent] == ["One", " two", " three"]
        assert [i.at_s for i in sent] == pytest.approx([0.3, 0.7, 1.3], abs=0.02)


async def test_text_mode_keeps_what_was_sent(autojump_clock):
    """A cut in text mode leaves what was sent as heard, and nothing follows."""

    async def generate(message: Message) -> AsyncIterator[object]:
        for piece in ("One ", "two ", "three"):
            yield AgentResponse(content=piece)
            await trio.sleep(1)

    async with open_call(agent(generate), audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.5)
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        assert caller.heard == "One two "
        (record,) = caller.call.history.interruptions
        assert (record.basis, record.phase, record.heard) == ("text", "text", "One two ")
        assert not caller.events(AgentSpeechCut)
        await caller.at(5)
        assert len(caller.events(AgentResponse)) == 2


async def test_an_agent_that_has_no_floor_is_not_heard(autojump_clock):
    """The text of an agent without the floor begins no answer and leaves no entry."""

    async def answer(call: Call) -> None:
        call.bridge(name="agent")
        call.bridge(name="other").publish(AgentResponse(content="Unheard."))

    async with open_call(answer) as caller:
        await caller.quiet()
        assert caller.call.history.entries == ()
        assert not caller.events(AgentGenerationComplete)


async def test_text_of_two_kinds_makes_two_utterances(autojump_clock):
    """Where what is said stops being interruptible, another utterance begins."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One ")
        yield AgentResponse(content="two ")
        yield AgentResponse(content="three ", interruptible=False)
        yield AgentResponse(content="four")

    async with open_call(agent(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        said: dict[int, str] = {}
        for event in caller.events(AgentSpeechSent):
            said[event.utterance] = said.get(event.utterance, "") + event.content
        assert said == {1: "One two", 2: "three", 3: "four"}
