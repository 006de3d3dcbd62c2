"""The handle of an answer, from call.say() and call.answer; 10 characters are said in a second."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import trio
import trio.testing

from bargein import AnswerHandle, Call, Message
from bargein.events import (
    AgentError,
    AgentGenerationComplete,
    AgentHandoff,
    AgentResponse,
    AgentSpeechSent,
    AgentStartedSpeaking,
    AnswerEnded,
    EmergencyStop,
    StateChanged,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import Caller, open_call
from tests.bridge.saying import counts, silent


def told(caller: Caller) -> list[tuple[int, str]]:
    """How each answer ended, as events tell it."""
    return [(event.answer, event.outcome) for event in caller.events(AnswerEnded)]


# --- say ------------------------------------------------------------------------------------------


async def test_say_enqueues_in_the_same_step(autojump_clock):
    """It never waits; the handle shows how far the text is, and awaiting it gives the outcome."""
    async with open_call(silent, chars_per_s=10) as caller:
        with trio.testing.assert_no_checkpoints():
            handle = caller.call.say("Hello there")
        assert [event.content for event in caller.events(AgentResponse)] == ["Hello there"]
        assert (handle.number, handle.outcome) == (1, None)
        assert (handle.generated, handle.heard) == ("Hello there", "")
        await caller.at(0.6)
        assert handle.heard == "Hello"
        assert await handle == "completed"
        assert caller.now_s == pytest.approx(1.1)
        assert (handle.outcome, handle.heard) == ("completed", "Hello there")
        assert told(caller) == [(1, "completed")]
        assert not caller.events(AgentGenerationComplete)  # nothing was generated
        assert [e.agent for e in caller.call.history] == ["call"]


async def test_a_handle_may_be_dropped(autojump_clock):
    """What nobody waits for is heard all the same."""

    async def answer(call: Call) -> None:
        await silent(call)
        call.say("Hello there")

    async with open_call(answer, chars_per_s=10) as caller:
        await caller.quiet()
        assert caller.heard == "Hello there"


async def test_cancelling_who_waits_cuts_nothing(autojump_clock):
    """The wait ends at once; the speech is heard to its end, and can be waited for again."""
    async with open_call(silent, chars_per_s=10) as caller:
        handle = caller.call.say("Hello there")
        with trio.move_on_after(0.55) as scope:
            await handle
        assert scope.cancelled_caught
        assert caller.now_s == pytest.approx(0.55)
        assert await handle == "completed"
        assert caller.now_s == pytest.approx(1.1)
        assert caller.call.history.interruptions == ()


async def test_a_run_that_waits_and_is_cut_cuts_nothing_of_it(autojump_clock):
    """A node's answer ends with the node; what it asked the call to say goes on."""

    async def generate(message: Message) -> AsyncIterator[object]:
        await call.say("To be heard to its end", interruptible=False)
        yield AgentResponse(content="Never.")

    async with open_call(silent, chars_per_s=10) as caller:
        call = caller.call
        chain = call.bridge(name="other").on(UserStoppedSpeaking)
        chain.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()
        call.hand_over("other")
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        assert caller.heard == "To be heard to its end"
        assert sorted(told(caller)) == [(1, "interrupted"), (2, "completed")]


async def test_many_may_wait_for_one_answer(autojump_clock):
    """All get the same word at the same time, and who comes late gets it at once."""
    got: list[tuple[str, float]] = []

    async with open_call(silent, chars_per_s=10) as caller:
        handle = caller.call.say("Hello there")

        async def wait() -> None:
            got.append((await handle, round(caller.now_s, 3)))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(wait)
        assert got == [("completed", 1.1)] * 3
        await trio.sleep(5)
        with trio.testing.assert_checkpoints():
            assert await handle == "completed"
    assert await handle == "completed"  # the call is over, too


async def test_an_answer_is_cut_by_the_caller(autojump_clock):
    """What was heard by then is kept, to the word."""
    async with open_call(silent, chars_per_s=10) as caller:
        handle = caller.call.say("Hello there you")
        await caller.at(0.8)
        caller.publish(UserStartedSpeaking())
        assert await handle == "interrupted"
        assert (handle.heard, handle.generated) == ("Hello", "Hello there you")
        assert caller.now_s == pytest.approx(0.8)


async def test_say_that_may_not_be_cut(autojump_clock):
    """With interruptible=False the caller's speech changes nothing, and the Stop key does."""
    async with open_call(silent, chars_per_s=10) as caller:
        handle = caller.call.say("Hello there", interruptible=False)
        caller.publish(UserStartedSpeaking())
        assert await handle == "completed"
        assert caller.cleared == []
        handle = caller.call.say("Hello there", interruptible=False)
        caller.publish(EmergencyStop())
        assert await handle == "interrupted"


async def test_texts_are_heard_in_the_order_in_which_they_were_said(autojump_clock):
    """Also when all were queued in one step; each handle has its own end."""
    async with open_call(silent, chars_per_s=10) as caller:
        handles = [caller.call.say(text) for text in ("First. ", "Second. ", "Third. ")]
        ended = []
        for handle in handles:
            assert await handle == "completed"
            ended.append(round(caller.now_s, 2))
        assert ended == [0.7, 1.5, 2.2]
        assert caller.heard == "First.\nSecond.\nThird. "


async def test_one_barge_in_cuts_every_text_that_waits(autojump_clock):
    """What had not begun was not heard."""
    async with open_call(silent, chars_per_s=10) as caller:
        first, second = caller.call.say("First one"), caller.call.say("Second")
        await caller.at(0.6)
        caller.publish(UserStartedSpeaking())
        assert (await first, await second) == ("interrupted", "interrupted")
        assert (first.heard, second.heard) == ("First", "")
        assert caller.now_s == pytest.approx(0.6)


async def test_say_while_the_caller_speaks(autojump_clock):
    """A text that is said after the caller began is not cut by that, only by a new start."""
    async with open_call(silent, chars_per_s=10) as caller:
        caller.publish(UserStartedSpeaking())
        assert await caller.call.say("Hello") == "completed"
        assert caller.call.current_state == "listening"


async def test_say_inside_a_stream(autojump_clock):
    """It is an answer of its own behind what the stream has said; the stream may wait for it."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="One. ")
        outcomes.append(await call.say("Two. "))
        yield AgentResponse(content="Three. ")

    outcomes: list[str] = []
    async with open_call(silent, chars_per_s=10) as caller:
        call = caller.call
        agent = call.bridge(name="teller")
        agent.on(UserStoppedSpeaking).stream(generate).broadcast()
        call.hand_over(agent)
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert outcomes == ["completed"]
        spoken = [event.content.strip() for event in caller.events(AgentSpeechSent)]
        assert spoken == ["One.", "Two.", "Three."]
        assert sorted(told(caller)) == [(1, "completed"), (2, "completed")]


async def test_say_beside_a_stream(autojump_clock):
    """What others say meanwhile is heard behind the whole answer, and not in its middle."""
    async with open_call(counts, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.2)
        assert await caller.call.say("Hello") == "completed"
        assert caller.now_s == pytest.approx(4.5, abs=0.01)
        assert caller.heard == "one two three four\nHello"


async def test_say_where_only_text_travels(autojump_clock):
    """It is heard when it is sent: the answer is over when say() returns."""
    async with open_call(silent, audio=False) as caller:
        handle = caller.call.say("Hello there")
        assert (handle.outcome, handle.heard) == ("completed", "Hello there")
        assert await handle == "completed"
        assert caller.now_s == 0
        (sent,) = caller.events(AgentSpeechSent)
        assert sent.content == "Hello there"


async def test_an_empty_text_is_heard_at_once(autojump_clock):
    """Saying nothing takes no time and blocks nobody."""
    async with open_call(silent, chars_per_s=10) as caller:
        assert await caller.call.say("") == "completed"
        assert caller.now_s == 0
        assert not caller.events(AgentStartedSpeaking)


async def test_what_is_no_text_is_refused_where_it_is_said(autojump_clock):
    """The error comes out of say(), and the call goes on."""
    async with open_call(silent, chars_per_s=10) as caller:
        with pytest.raises(TypeError, match=r"say\(\) text= is a string, not None"):
            caller.call.say(None)
        assert await caller.call.say("Hello") == "completed"


# --- pauses and holds -----------------------------------------------------------------------------


async def test_a_text_that_is_said_while_paused_begins_when_it_goes_on(autojump_clock):
    """Until then it has no answer; nothing of it is heard, and nothing is lost."""
    async with open_call(counts, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.call.handle.pause()
        handle = caller.call.say("Hello")
        assert (handle.number, handle.outcome, handle.generated, handle.heard) == (
            None,
            None,
            "",
            "",
        )
        await caller.at(60)
        assert caller.heard.strip() == "one"
        caller.call.handle.resume()
        assert (handle.number, handle.generated) == (2, "Hello")
        assert await handle == "completed"
        await caller.quiet()
        assert "Hello" in caller.heard
        assert sorted(told(caller)) == [(1, "completed"), (2, "completed")]


async def test_a_pause_holds_what_is_being_said(autojump_clock):
    """The wait takes as much longer as the pause, and a hold of the voice does the same."""
    async with open_call(silent, chars_per_s=10) as caller:
        handle = caller.call.say("Hello there")
        await caller.at(0.5)
        caller.call.handle.pause()
        await caller.at(10.5)
        caller.call.handle.resume()
        assert await handle == "completed"
        assert caller.now_s == pytest.approx(11.1, abs=0.01)
        handle = caller.call.say("Hello there")
        caller.call.hold_speech("connection")
        await trio.sleep(10)
        assert handle.outcome is None
        caller.call.release_speech("connection")
        assert await handle == "completed"
        assert caller.now_s == pytest.approx(22.2, abs=0.01)


async def test_a_text_that_has_not_begun_is_interrupted(autojump_clock):
    """It is never said; the others that wait with it are."""
    async with open_call(counts, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        caller.call.handle.pause()
        handle, other = caller.call.say("Never"), caller.call.say("Hello")
        receipt = handle.interrupt()
        assert (receipt.accepted, receipt.answer, bool(receipt.settled)) == (True, None, True)
        assert await handle == "interrupted"
        assert handle.interrupt() is receipt
        caller.call.handle.resume()
        assert await other == "completed"
        await caller.quiet()
        assert "Never" not in caller.heard


ENDS = {
    "cancel": lambda call: call.handle.cancel(),
    "redirect": lambda call: call.handle.redirect("something else"),
    "emergency stop": lambda call: call.handle.emergency_stop(),
    "stop key": lambda call: call.publish(EmergencyStop()),
    "shutdown": lambda call: call.handle.shutdown(),
    "hang up": lambda call: call.end("disconnected"),
    "server stops": lambda call: call.end("shutdown"),
}


WORDS = {
    "redirect": "redirected",
    "shutdown": "shutdown",
    "hang up": "disconnected",
    "server stops": "shutdown",
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("paused", [False, True])
async def test_whatever_ends_it_has_its_word(autojump_clock, how, paused):
    """The text that is being said and the one that waits end alike, and nobody waits for ever."""
    async with open_call(counts, chars_per_s=10) as caller:
        first = caller.call.say("Hello there you")
        await caller.at(0.8)
        if paused:
            caller.call.handle.pause()
        second = caller.call.say("Never")
        ENDS[how](caller.call)
        with trio.fail_after(1):
            assert await first == await second == WORDS.get(how, "interrupted")
        assert (first.heard, second.heard) == ("Hello", "")
        assert (1, first.outcome) in told(caller)
        await trio.sleep(5)
        assert not any("Never" in event.content for event in caller.events(AgentSpeechSent))
        assert first.heard == "Hello"


@pytest.mark.parametrize(("reason", "word"), [("hangup", "disconnected"), ("shutdown", "shutdown")])
async def test_say_after_the_end_of_the_call(autojump_clock, reason, word):
    """Nothing is said, and the handle has its outcome from the start."""
    async with open_call(silent, chars_per_s=10) as caller:
        caller.call.end(reason)
        handle = caller.call.say("Hello")
        assert (handle.number, handle.outcome) == (None, word)
        assert await handle == word
        assert handle.interrupt().reason == f"the answer is over: {word}"
        assert caller.now_s == 0
        assert caller.played == []
        assert not caller.events(AgentResponse)


# --- the answer under way -------------------------------------------------------------------------


async def test_the_answer_under_way(autojump_clock):
    """There is none in silence; each answer has one handle, and say() returns that of its own."""
    async with open_call(counts, chars_per_s=10) as caller:
        call = caller.call
        assert call.answer is None
        said = call.say("Hello")
        assert call.answer is said
        await said
        assert call.answer is None
        caller.publish(UserStoppedSpeaking())
        handle = call.answer
        assert handle is not None
        assert handle is call.answer
        assert (handle.number, handle.heard) == (2, "")
        await trio.sleep(1.5)
        assert handle.generated == "one two "
        assert await handle == "completed"
        assert handle.heard == "one two three four "
        assert call.answer is None


async def test_an_answer_that_fails(autojump_clock):
    """Its outcome says so; nothing is raised in who waits."""

    class Broken:
        async def generate(self, message: Message) -> AsyncIterator[object]:
            yield AgentResponse(content="Well")
            raise RuntimeError("no")

    async def answer(call: Call) -> None:
        call.converse(Broken())

    async with open_call(answer, chars_per_s=10, expect_errors=RuntimeError) as caller:
        caller.publish(UserStoppedSpeaking())
        handle = caller.call.answer
        assert handle is not None
        assert await handle == "failed"
        assert handle.heard == "Well"
        assert len(caller.events(AgentError)) == 1


async def test_an_answer_that_goes_to_the_background(autojump_clock):
    """For who waits it is over, and an interrupt is stale."""
    async with open_call(counts, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        handle = caller.call.answer
        assert handle is not None
        await caller.at(0.5)
        caller.call.handle.background()
        assert await handle == "backgrounded"
        assert handle.interrupt().reason == "the answer is over: backgrounded"
        assert caller.now_s == pytest.approx(0.5)


async def test_an_answer_is_cut_by_a_hand_over(autojump_clock):
    """The agent that loses the floor falls silent; who has waited goes on."""
    async with open_call(counts, chars_per_s=10) as caller:
        caller.call.bridge(name="other")
        caller.publish(UserStoppedSpeaking())
        handle = caller.call.answer
        assert handle is not None
        await caller.at(1.2)
        caller.publish(AgentHandoff(target="other"))
        assert await handle == "interrupted"
        assert (handle.heard, caller.call.answer) == ("one", None)


async def test_routes_find_the_outcome_where_it_is_told(autojump_clock):
    """A route on AnswerEnded sees the same word in the handle."""
    seen: list[tuple[str, str | None]] = []

    async with open_call(silent, chars_per_s=10) as caller:
        handle: AnswerHandle = caller.call.say("Hello")
        watcher = caller.call.bridge(name="watcher", is_agent=False)
        watcher.on(AnswerEnded).map(lambda m: seen.append((m.event.outcome, handle.outcome)))
        await handle
        assert seen == [("completed", "completed")]
        assert repr(handle) == "<AnswerHandle of answer 1, completed>"
        await trio.testing.wait_all_tasks_blocked()
        assert caller.events(StateChanged)[-1].state == "idle"
