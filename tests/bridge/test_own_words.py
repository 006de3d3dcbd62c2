"""Chains that are cut by what they publish themselves; 10 characters are said in a second."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
from structlog.testing import capture_logs

from bargein import AgentEntry, Call, Message, ToolEntry
from bargein.events import (
    AgentGenerationComplete,
    AgentResponse,
    AgentSpeechSent,
    AnswerEnded,
    ToolCall,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import Caller, open_call

pytestmark = pytest.mark.parametrize("audio", [True, False], ids=["audio", "text"])


def agent(*says: object, rule: object) -> object:
    """Return an agent that publishes some events, a second apart, and whose rule is meant."""

    async def generate(message: Message) -> AsyncIterator[object]:
        for event in says:
            yield event
            await trio.sleep(1)

    async def answer(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking)
        chain.interrupt_on(rule).stream(generate).broadcast()

    return answer


def ask(caller: Caller) -> None:
    caller.publish(UserTranscriptionReceived(content="hello"))
    caller.publish(UserStoppedSpeaking())


def answers(caller: Caller) -> list[tuple[int, str, str]]:
    """What the history has of each answer of the agent."""
    entries = [entry for entry in caller.call.history.entries if isinstance(entry, AgentEntry)]
    return [(entry.answer, entry.generated, entry.heard) for entry in entries]


async def test_the_first_words_of_a_chain_that_they_cut_are_its_answer(autojump_clock, audio):
    """There is one answer, with those words, heard to their end; then the call is idle."""
    says = AgentResponse(content="Hi. "), AgentResponse(content="never")
    with capture_logs() as logs:
        async with open_call(
            agent(*says, rule=AgentResponse), chars_per_s=10, audio=audio
        ) as caller:
            ask(caller)
            assert await _numbers_of_snapshots(caller) <= {None, 1}
            assert answers(caller) == [(1, "Hi. ", "Hi. ")]
            assert [e.content.strip() for e in caller.events(AgentSpeechSent)] == ["Hi."]
            ends = [(e.answer, e.outcome, e.heard) for e in caller.events(AnswerEnded)]
            assert ends == [(1, "interrupted", "Hi. ")]
            complete = [(e.answer, e.content) for e in caller.events(AgentGenerationComplete)]
            assert complete == [(1, "Hi. ")]
            assert caller.call.current_state == "idle"
            ask(caller)
            await caller.quiet()
            assert [number for number, *_ in answers(caller)] == [1, 2]
    assert not [line for line in logs if line["event"] == "barge_in"]  # nobody barged in


async def _numbers_of_snapshots(caller: Caller) -> set[int | None]:
    """Return the answers that the snapshots of the next three seconds show."""
    numbers = set()
    for _ in range(30):
        numbers.add(caller.call.snapshot().answer)
        await trio.sleep(0.1)
    return numbers


async def test_later_words_that_cut_their_chain_are_an_answer_that_ends(autojump_clock, audio):
    """What was said before stays as it was heard; the last are heard, and their answer ends."""
    says = [AgentResponse(content=text) for text in ("One two three. ", "Bye. ", "never")]

    def is_goodbye(message: Message) -> bool:
        return isinstance(message.event, AgentResponse) and message.event.content == "Bye. "

    async with open_call(agent(*says, rule=is_goodbye), chars_per_s=10, audio=audio) as caller:
        ask(caller)
        await caller.at(5.0)
        heard = "One two" if audio else "One two three. "
        assert answers(caller) == [(1, "One two three. ", heard), (2, "Bye. ", "Bye. ")]
        ends = {e.answer: (e.outcome, e.heard) for e in caller.events(AnswerEnded)}
        assert ends == {1: ("interrupted", heard), 2: ("completed", "Bye. ")}
        assert len(caller.events(AnswerEnded)) == 2
        assert caller.call.current_state == "idle"


async def test_a_tool_call_that_cuts_its_chain_stays_in_its_answer(autojump_clock, audio):
    """The history has it in the answer that called it, which is the only one."""
    says = ToolCall(id="1", name="looks", arguments={}), AgentResponse(content="never")
    async with open_call(agent(*says, rule=ToolCall), audio=audio) as caller:
        ask(caller)
        await caller.at(5.0)
        assert answers(caller) == [(1, "", "")]
        [entry] = [e for e in caller.call.history.entries if isinstance(e, ToolEntry)]
        assert entry.answer == 1
        assert [(e.answer, e.outcome) for e in caller.events(AnswerEnded)] == [(1, "interrupted")]
        assert caller.call.current_state == "idle"


async def test_words_of_a_further_chain_that_cut_the_first_are_its_answer(autojump_clock, audio):
    """Also where the run that they cut has ended before, and another speaks for it."""

    async def think(message: Message) -> AsyncIterator[object]:
        yield ToolCall(id="1", name="looks", arguments={})

    async def speak(message: Message) -> AsyncIterator[object]:
        await trio.sleep(1)
        yield AgentResponse(content="Hi. ")

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        first = bridge.on(UserStoppedSpeaking).interrupt_on(AgentResponse)
        first.stream(think).broadcast()
        bridge.on(ToolCall).interrupt_on(AgentResponse).stream(speak).broadcast()

    async with open_call(answer, chars_per_s=10, audio=audio) as caller:
        ask(caller)
        await caller.at(5.0)
        assert answers(caller) == [(1, "Hi. ", "Hi. ")]
        assert [e.answer for e in caller.events(AnswerEnded)] == [1]
        assert caller.call.current_state == "idle"
