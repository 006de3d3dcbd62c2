"""The agent's voice, held and let go; 10 characters are said in a second."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from bargein import Call
from bargein.events import (
    AgentHandoff,
    AgentResponse,
    AgentSpeechCut,
    AgentSpeechHeld,
    AgentSpeechReleased,
    AgentSpeechSent,
    AgentStartedSpeaking,
    AnswerEnded,
    EmergencyStop,
    StateChanged,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import Caller, open_call

TEXT = "one two three four five"
WHOLE_S = len(TEXT) / 10


def agent(*texts: str, after_s: float = 0.0, lingers_s: float = 0.0):
    """An agent that says its texts, one an answer, the last one for ever."""
    left = list(texts) or [TEXT]

    async def generate(message):
        await trio.sleep(after_s)
        yield AgentResponse(content=left.pop(0) if len(left) > 1 else left[0])
        if lingers_s:
            await trio.sleep(lingers_s)

    async def answer(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking)
        chain.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()

    return answer


def holds_told(caller: Caller) -> list[tuple[float, str, object]]:
    """The times, classes and reasons of the holds and releases that were told."""
    return [
        (round(item.at_s, 3), type(item.event).__name__[11:], item.event.reason)
        for item in caller.received
        if isinstance(item.event, AgentSpeechHeld | AgentSpeechReleased)
    ]


async def ended_at(caller: Caller) -> float:
    """Wait until the answer is over, and return when that was."""
    await caller.quiet()
    (end,) = [item.at_s for item in caller.received if isinstance(item.event, AnswerEnded)]
    return end


both = pytest.mark.parametrize("holds", [True, False])


# --- held and released ----------------------------------------------------------------------------


async def test_a_player_that_can_stands_still(autojump_clock):
    """It is told of the hold in the same step, and goes on with the sample."""
    async with open_call(agent(), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.05)
        caller.call.hold_speech("barge_in")
        assert caller.held == [(pytest.approx(1.05), True)]
        assert caller.call.answers.audio.is_held
        await caller.at(61.05)
        assert caller.heard == "one two"
        caller.call.release_speech("barge_in")
        assert caller.held[1:] == [(pytest.approx(61.05), False)]
        assert not caller.call.answers.audio.is_held
        assert await ended_at(caller) == pytest.approx(60 + WHOLE_S, abs=0.002)
        assert caller.cleared == []
        (released,) = caller.events(AgentSpeechReleased)
        assert (released.held_s, released.respoken) == (pytest.approx(60), False)


async def test_a_player_that_cannot_goes_on_with_the_first_word_not_heard(autojump_clock):
    """It is cleared in the same step, and says the word again that it was saying."""
    async with open_call(agent(), chars_per_s=10, holds=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.05)
        caller.call.hold_speech("barge_in")
        assert caller.cleared == [(pytest.approx(1.05), 1)]
        await caller.at(61.05)
        assert caller.heard == "one two"
        caller.call.release_speech("barge_in")
        # "three" begins at 0.8 s.
        assert await ended_at(caller) == pytest.approx(60 + WHOLE_S + 0.25, abs=0.002)
        assert caller.heard == TEXT
        assert "".join(e.content for e in caller.events(AgentSpeechSent)) == TEXT
        (released,) = caller.events(AgentSpeechReleased)
        assert (released.held_s, released.respoken) == (pytest.approx(60), True)


@both
async def test_a_voice_that_is_held_as_it_begins_is_not_heard(autojump_clock, holds):
    """Held in the step of its first sound, as if the caller already spoke, it sends no more."""

    def hold_it(message):
        call.hold_speech("barge_in")

    async with open_call(agent(), chars_per_s=10, holds=holds) as caller:
        call = caller.call
        call.bridge(name="watcher", is_agent=False).on(AgentStartedSpeaking).map(hold_it)
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        assert len(caller.played) == 1
        call.release_speech("barge_in")
        await caller.quiet()
        assert caller.heard == TEXT


async def test_a_short_hold_costs_no_more_than_its_length(autojump_clock):
    """The gap is what passes between hold and release, to the millisecond."""
    async with open_call(agent(), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.call.hold_speech("barge_in")
        await caller.at(0.55)
        caller.call.release_speech("barge_in")
        assert await ended_at(caller) == pytest.approx(WHOLE_S + 0.05, abs=0.002)


@both
async def test_only_the_voice_stands_still(autojump_clock, holds):
    """What is generated goes on while the voice is held, and is said after the release."""
    done: list[float] = []

    async def generate(message):
        for word in TEXT.split():
            yield AgentResponse(content=f"{word} ")
            await trio.sleep(0.2)
        done.append(trio.current_time())

    async def answer(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking)
        chain.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()

    async with open_call(answer, chars_per_s=10, holds=holds) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.3)
        caller.call.hold_speech("barge_in")
        await caller.at(5)
        assert done == [pytest.approx(1.0)]
        assert not caller.events(AnswerEnded)
        caller.call.release_speech("barge_in")
        await ended_at(caller)
        assert caller.heard.strip() == TEXT


@both
async def test_the_state_stays_speaking(autojump_clock, holds):
    """A hold is no state of the call, and tells none."""
    async with open_call(agent(), chars_per_s=10, holds=holds) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        changes = len(caller.events(StateChanged))
        caller.call.hold_speech("barge_in")
        await caller.at(5)
        assert caller.call.current_state == caller.call.current_state == "speaking"
        caller.call.release_speech("barge_in")
        assert caller.call.current_state == "speaking"
        assert len(caller.events(StateChanged)) == changes


async def test_nothing_is_said_of_what_begins_during_a_hold(autojump_clock):
    """What is to be said next waits with what is held, and follows it."""
    async with open_call(agent(), chars_per_s=10) as caller:
        call = caller.call
        call.say("one two")
        await caller.at(0.35)
        call.hold_speech("barge_in")
        call.say("three")
        await caller.at(5)
        assert len(caller.events(AgentStartedSpeaking)) == 1
        call.release_speech("barge_in")
        await caller.quiet()
        assert caller.now_s == pytest.approx(4.65 + 1.2, abs=0.002)


# --- reasons --------------------------------------------------------------------------------------


@both
async def test_it_goes_on_when_the_last_reason_is_released(autojump_clock, holds):
    """Each reason counts once, in any order; each is told once."""
    async with open_call(agent(), chars_per_s=10, holds=holds) as caller:
        call = caller.call
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        call.hold_speech("barge_in")
        await caller.at(1)
        call.hold_speech("echo")
        call.hold_speech("barge_in")
        call.release_speech("nobody")
        await caller.at(2)
        call.release_speech("barge_in")
        call.release_speech("barge_in")
        assert call.answers.audio.is_held
        await caller.at(3)
        assert caller.heard == "one"
        call.release_speech("echo")
        await caller.quiet()
        assert caller.heard == TEXT
        assert holds_told(caller) == [
            (0.5, "Held", "barge_in"),
            (1.0, "Held", "echo"),
            (2.0, "Released", "barge_in"),
            (3.0, "Released", "echo"),
        ]
        released = caller.events(AgentSpeechReleased)
        assert [event.respoken for event in released] == [False, not holds]
        assert [event.held_s for event in released] == pytest.approx([1.5, 2])


@both
async def test_the_verb_pause_is_a_hold(autojump_clock, holds):
    """The verb and others hold together; the state is paused while the verb does."""
    async with open_call(agent(), chars_per_s=10, holds=holds) as caller:
        call = caller.call
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        call.hold_speech("barge_in")
        call.handle.pause()
        assert call.current_state == "paused"
        await caller.at(1)
        call.release_speech("barge_in")
        await caller.at(2)
        assert caller.heard == "one"
        call.handle.resume()
        assert call.current_state == "speaking"
        await caller.quiet()
        assert caller.heard == TEXT
        assert [reason for _, _, reason in holds_told(caller)] == [
            "barge_in", "pause", "barge_in", "pause"
        ]  # fmt: skip


async def test_a_pause_silences_a_player_that_cannot_stand_still(autojump_clock):
    """The verb clears it at once, and what it had not played is heard after the resume."""
    async with open_call(agent(), chars_per_s=10, holds=False) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.call.handle.pause()
        assert caller.cleared == [(1.0, 1)]
        await caller.at(10)
        assert caller.heard == "one two"
        caller.call.handle.resume()
        await caller.quiet()
        assert caller.heard == TEXT


# --- what is held is cut --------------------------------------------------------------------------


@both
async def test_what_is_held_can_be_cut(autojump_clock, holds):
    """The cut is at the sample of the hold, the hold is gone, and the next answer is heard."""
    async with open_call(agent(TEXT, "six"), chars_per_s=10, holds=holds) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.call.hold_speech("barge_in")
        await caller.at(1.4)
        caller.publish(UserStartedSpeaking())
        assert not caller.call.answers.audio.is_held
        (cut,) = caller.events(AgentSpeechCut)
        assert (cut.heard, cut.at_ms) == ("one two", pytest.approx(1000))
        assert holds_told(caller)[1] == (1.4, "Released", "barge_in")
        caller.call.release_speech("barge_in")
        assert len(holds_told(caller)) == 2
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.now_s == pytest.approx(1.7, abs=0.002)
        assert caller.heard == "one two\nsix"


def stop_key(caller: Caller) -> None:
    caller.publish(EmergencyStop())


def cancel(caller: Caller) -> None:
    caller.call.handle.cancel()


def hand_over(caller: Caller) -> None:
    caller.publish(AgentHandoff(target="other"))


def to_background(caller: Caller) -> None:
    caller.call.handle.background()


@both
@pytest.mark.parametrize("end", [stop_key, cancel, hand_over, to_background])
async def test_however_it_is_cut_the_hold_is_gone(autojump_clock, holds, end):
    """After it nothing is held, nothing hangs, and who speaks next is heard."""

    async def answer(call: Call) -> None:
        await agent(TEXT, lingers_s=1.5)(call)
        call.bridge(name="other")

    async with open_call(answer, chars_per_s=10, holds=holds) as caller:
        call = caller.call
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        call.hold_speech("barge_in")
        end(caller)
        assert not call.answers.audio.is_held
        assert holds_told(caller)[1:] == [(1.0, "Released", "barge_in")]
        assert await call.say("six") == "completed"
        assert caller.now_s == pytest.approx(1.3, abs=0.002)


@both
async def test_a_hang_up_ends_the_hold(autojump_clock, holds):
    """The call ends at once, with what was heard, and later holds are none."""
    async with open_call(agent(), chars_per_s=10, holds=holds) as caller:
        call = caller.call
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        call.hold_speech("barge_in")
        call.end("hangup")
        assert not call.answers.audio.is_held
        assert caller.heard == "one two"
        call.hold_speech("pause")
        call.release_speech("pause")
        assert not call.answers.audio.is_held
        assert caller.now_s == 1
    assert holds_told(caller) == [(1.0, "Held", "barge_in"), (1.0, "Released", "barge_in")]


@both
async def test_what_was_said_before_a_hand_over_stays_held(autojump_clock, holds):
    """The agent that hands over has said its sentence; it is held on, then heard to its end."""

    async def generate(message):
        yield AgentResponse(content="I put you through.")
        yield AgentHandoff(target="other")

    async def answer(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking)
        chain.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()
        call.bridge(name="other")

    async with open_call(answer, chars_per_s=10, holds=holds) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        caller.call.hold_speech("barge_in")
        await caller.at(3)
        assert caller.call.answers.audio.is_held
        caller.call.release_speech("barge_in")
        await caller.quiet()
        assert caller.heard == "I put you through."


@both
async def test_while_something_is_left_the_hold_is_not_gone(autojump_clock, holds):
    """Of two texts the one that may be cut is; the other stays held, and is heard to its end."""
    async with open_call(agent(), chars_per_s=10, holds=holds) as caller:
        call = caller.call
        first = call.say("one two")
        await caller.at(0.35)
        second = call.say("three", interruptible=False)
        call.hold_speech("barge_in")
        await caller.at(1)
        caller.publish(UserStartedSpeaking())
        assert call.answers.audio.is_held
        assert second.outcome is None
        await caller.at(2)
        call.release_speech("barge_in")
        await caller.quiet()
        await trio.testing.wait_all_tasks_blocked()
        assert (first.outcome, second.outcome) == ("interrupted", "completed")
        assert caller.now_s == pytest.approx(2.5, abs=0.002)


# --- nothing to hold ------------------------------------------------------------------------------


async def test_without_anything_to_hold_nothing_is_held(autojump_clock):
    """In silence, and right when the last sample was heard, a hold is none and is not told."""
    async with open_call(agent(), chars_per_s=10) as caller:
        caller.call.hold_speech("barge_in")
        caller.publish(UserStoppedSpeaking())
        await caller.at(WHOLE_S)
        caller.call.hold_speech("barge_in")
        assert not caller.call.answers.audio.is_held
        assert holds_told(caller) == []
        assert caller.heard == TEXT


@both
async def test_an_answer_that_is_still_thought_of_is_held(autojump_clock, holds):
    """While an agent works in silence its voice can be held before it speaks."""
    async with open_call(agent(after_s=1), chars_per_s=10, holds=holds) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.call.hold_speech("barge_in")
        await caller.at(3)
        assert not caller.events(AgentStartedSpeaking)
        caller.call.release_speech("barge_in")
        assert await ended_at(caller) == pytest.approx(3 + WHOLE_S, abs=0.002)
        assert caller.events(AgentSpeechReleased)[0].respoken is False


@both
@pytest.mark.parametrize("reason", ["pause", "connection"])
async def test_a_lasting_reason_holds_what_comes_next(autojump_clock, holds, reason):
    """Begun in silence, and with what it held cut, it holds until it is released."""
    async with open_call(agent(), chars_per_s=10, holds=holds) as caller:
        call = caller.call
        call.hold_speech(reason)
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        assert not caller.events(AgentStartedSpeaking)
        caller.publish(UserStartedSpeaking())
        assert call.answers.audio.is_held
        caller.publish(UserStoppedSpeaking())
        await caller.at(3)
        assert not caller.events(AgentStartedSpeaking)
        call.release_speech(reason)
        await caller.quiet()
        assert caller.now_s == pytest.approx(3 + WHOLE_S, abs=0.002)
        assert caller.heard == TEXT


async def test_where_only_text_travels_nothing_is_held(autojump_clock):
    """Text is heard as it is sent: there is no voice to hold."""
    async with open_call(agent(), audio=False) as caller:
        caller.call.hold_speech("connection")
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == TEXT
        assert not caller.call.answers.audio.is_held
        assert holds_told(caller) == []


# --- a connection that was lost -------------------------------------------------------------------


@both
async def test_what_a_lost_connection_has_swallowed_is_sent_again(autojump_clock, holds):
    """Held without a connection, and sent again over a new one: it goes on with the next word."""
    async with open_call(agent(), chars_per_s=10, holds=holds) as caller:
        call = caller.call
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.05)
        call.hold_speech("connection")
        await caller.at(20)
        call.answers.resend()
        call.release_speech("connection")
        assert await ended_at(caller) == pytest.approx(20 + WHOLE_S - 0.8, abs=0.002)
        assert caller.heard == TEXT
        assert caller.events(AgentSpeechReleased)[0].respoken is True


@both
async def test_it_can_be_sent_again_at_once(autojump_clock, holds):
    """Without a hold the next word follows in the very moment, under another number."""
    async with open_call(agent(), chars_per_s=10, holds=holds) as caller:
        call = caller.call
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.05)
        assert call.answers.player_number(1) == 1
        call.answers.resend()
        assert call.answers.player_number(1) == 2
        assert await ended_at(caller) == pytest.approx(1.05 + WHOLE_S - 0.8, abs=0.002)
        assert caller.heard == TEXT
        assert call.answers.player_number(1) == 1


async def test_sent_again_in_silence_is_nothing(autojump_clock):
    """With nothing on the way nothing is sent, and the next answer is heard as usual."""
    async with open_call(agent(), chars_per_s=10) as caller:
        caller.call.answers.resend()
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.now_s == pytest.approx(WHOLE_S, abs=0.002)
        assert caller.cleared == []
