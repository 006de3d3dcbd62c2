"""Answers and their utterances in a call; 10 characters are said in a second."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable

import trio
import trio.testing

from bargein import AgentEntry, Call, Message
from bargein.events import (
    AgentAudioComplete,
    AgentGenerationComplete,
    AgentResponse,
    AgentStartedSpeaking,
    AgentStoppedSpeaking,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import open_call

VOICE_S = 10.0


def agent(generate: object, **rule: object) -> Callable[[Call], Awaitable[None]]:
    async def answer(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking)
        chain.interrupt_on(UserStartedSpeaking, **rule).stream(generate).broadcast()

    return answer


async def silent(call: Call) -> None:
    """An agent that says nothing by itself."""
    call.bridge(name="agent")


# --- answers and utterances -----------------------------------------------------------------------


async def test_a_generation_completes_exactly_once(autojump_clock):
    """Each generation has one end with its word, its text and its number."""

    async def generate(message: Message) -> AsyncIterator[object]:
        text = next(texts)
        yield AgentResponse(content=text)
        if text == "bad":
            raise RuntimeError("no")
        await trio.sleep(3)

    texts = iter(["one", "cut me", "bad", "gone"])
    async with open_call(agent(generate), chars_per_s=10, expect_errors=RuntimeError) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(3.5)
        caller.publish(UserStoppedSpeaking())
        await caller.at(4.0)
        caller.publish(UserStartedSpeaking())
        caller.publish(UserStoppedSpeaking())
        await caller.at(5.0)
        caller.publish(UserStoppedSpeaking())
        await caller.at(5.2)
        caller.call.end("shutdown")
        await trio.testing.wait_all_tasks_blocked()
        completed = caller.events(AgentGenerationComplete)
    assert [(e.outcome, e.content, e.answer) for e in completed] == [
        ("completed", "one", 1),
        ("interrupted", "cut me", 2),
        ("failed", "bad", 3),
        ("shutdown", "gone", 4),
    ]


async def test_a_hang_up_is_a_disconnect(autojump_clock):
    """A generation that runs when the caller goes ends as disconnected."""

    async def generate(message: Message) -> AsyncIterator[object]:
        await trio.sleep(9)
        yield AgentResponse(content="never")

    async with open_call(agent(generate)) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.call.end("hangup")
        await trio.testing.wait_all_tasks_blocked()
        assert [e.outcome for e in caller.events(AgentGenerationComplete)] == ["disconnected"]
        caller.publish(UserStoppedSpeaking())
        await caller.at(20)
        assert len(caller.events(AgentGenerationComplete)) == 1


async def test_a_chain_of_routes_is_one_answer(autojump_clock):
    """Runs that an agent's own run sets in motion belong to its answer, also after it has ended."""

    async def think(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="Well. ")
        yield EmergencyWord(word="slow")

    async def speak(message: Message) -> AsyncIterator[object]:
        await trio.sleep(0.2)
        yield AgentResponse(content="Here it ")
        await trio.sleep(0.2)
        yield AgentResponse(content="comes.")

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        on_start = bridge.on(UserStoppedSpeaking).interrupt_on(UserStartedSpeaking)
        on_start.stream(think).broadcast()
        bridge.on(EmergencyWord).stream(speak).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        (complete,) = caller.events(AgentGenerationComplete)
        assert (complete.outcome, complete.content) == ("completed", "Well. Here it comes.")
        assert caller.heard == "Well. Here it comes."
        caller.publish(UserStoppedSpeaking())
        await trio.sleep(0.3)
        caller.publish(UserStartedSpeaking())
        (_, complete) = caller.events(AgentGenerationComplete)
        assert (complete.outcome, complete.content) == ("interrupted", "Well. Here it ")
        await caller.quiet()
        await trio.sleep(2)
        assert len(caller.call.history.interruptions) == 1
        assert caller.heard == "Well. Here it comes."
        assert len(caller.events(AgentGenerationComplete)) == 2


async def test_a_cut_further_down_the_chain_silences_its_words(autojump_clock):
    """A later route that declares the interrupt is cut although the first one is not."""

    async def think(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="Well, ")
        yield EmergencyWord(word="slow")

    async def speak(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="here it comes.")

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        bridge.on(UserStoppedSpeaking).stream(think).broadcast()
        bridge.on(EmergencyWord).interrupt_on(UserStartedSpeaking).stream(speak).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        caller.publish(UserStartedSpeaking())
        assert caller.cleared == [(1.0, 1)]
        assert caller.heard == "Well, here"
        assert caller.call.history.interruptions[0].heard == "Well, here"
        await caller.quiet()
        assert len(caller.events(AgentGenerationComplete)) == 1


async def test_a_failure_further_down_the_chain_is_the_outcome(autojump_clock):
    """An answer of several runs has failed as soon as one of them has."""

    async def think(message: Message) -> AsyncIterator[object]:
        yield EmergencyWord(word="slow")
        await trio.sleep(1)

    async def speak(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="Well")
        raise RuntimeError("no")

    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        bridge.on(UserStoppedSpeaking).stream(think).broadcast()
        bridge.on(EmergencyWord).stream(speak).broadcast()

    async with open_call(answer, chars_per_s=10, expect_errors=RuntimeError) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        (complete,) = caller.events(AgentGenerationComplete)
        assert (complete.outcome, complete.content) == ("failed", "Well")
        late = AgentAudioComplete(utterance=1)
        caller.call.publish(late, source="voice")  # of an utterance that is over: nothing happens
        assert caller.heard == "Well"


async def test_an_answer_without_words_leaves_no_entry(autojump_clock):
    """A generation that says nothing completes, and the history stays empty."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield EmergencyWord(word="quiet")

    async with open_call(agent(generate)) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert [e.content for e in caller.events(AgentGenerationComplete)] == [""]
        assert caller.call.history.entries == ()


async def test_what_one_agent_hears_of_another(autojump_clock):
    """An event of the playout is a fact: it reaches routes although its run was cut."""
    seen: list[tuple[str, bool]] = []

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One two three")

    async def answer(call: Call) -> None:
        await agent(generate)(call)  # type: ignore[operator]
        listener = call.bridge(name="listener")
        listener.on(AgentStoppedSpeaking).map(lambda m: seen.append((m.source, m.event.cut)))

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.publish(UserStartedSpeaking())
        assert seen == [("agent", True)]


async def test_a_history_read_in_mid_speech_is_up_to_date(autojump_clock):
    """Reading the history brings it up to this very moment."""
    async with open_call(silent, chars_per_s=10) as caller:
        caller.call.say("a b c d e f g")
        for at_s, heard in ((0.05, ""), (0.1, "a"), (0.27, "a"), (0.3, "a b"), (1.3, None)):
            await caller.at(at_s)
            expected = "a b c d e f g" if heard is None else heard
            assert caller.heard == expected


async def test_who_reads_the_history_at_a_piece_of_text_hides_nothing(autojump_clock):
    """Where only text travels, a piece is heard once the chains have had it, also by the next read.

    A chain that reads the history in between must not leave it at what was heard before.
    """

    async def generate(message: Message) -> AsyncIterator[AgentResponse]:
        for word in ("one ", "two "):
            yield AgentResponse(content=word)
        await trio.sleep_forever()

    async def answer(call: Call) -> None:
        await agent(generate)(call)
        call.bridge(name="reader").on(AgentResponse).map(lambda _: read.append(heard(call)))

    def heard(call: Call) -> list[str]:
        return [entry.heard for entry in call.history if isinstance(entry, AgentEntry)]

    read: list[list[str]] = []
    async with open_call(answer, audio=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await trio.testing.wait_all_tasks_blocked()
        assert read == [[""], ["one "]]
        assert heard(caller.call) == ["one two "]


class EmergencyWord(AgentStartedSpeaking):
    """An event of the tests' own, that one route sends to the next."""

    utterance: int = 0
    word: str
