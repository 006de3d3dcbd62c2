"""The words that are in the air, and what could cut them; 10 characters are said in a second."""

from __future__ import annotations

import pytest
import trio

from bargein import Call
from bargein.events import (
    AgentResponse,
    DTMFInput,
    EmergencyStop,
    UserStartedSpeaking,
    UserStoppedSpeaking,
)
from bargein.testing import open_call

BEFORE_CHARS = 60
AFTER_CHARS = 80
LINGERS_S = 3.0

LONG = " ".join(f"word{n}" for n in range(60)) + "."


def agent(text: str, *, rule: object = UserStartedSpeaking, **more):
    """An agent that says a text, or thinks for a second if there is none."""

    async def generate(message):
        if text:
            yield AgentResponse(content=text)
        else:
            await trio.sleep(1)

    async def answer(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking)
        chain.interrupt_on(rule, **more).stream(generate).broadcast()

    return answer


# --- what is being said ---------------------------------------------------------------------------


async def test_nothing_is_said_before_a_sound_of_it(autojump_clock):
    """While an agent is silent nothing is being said, nor while it thinks."""
    async with open_call(agent(""), chars_per_s=10) as caller:
        assert caller.call.answers.audio.saying == ""
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        assert caller.call.answers.audio.saying == ""


async def test_the_clause_that_the_player_has_is_being_said_whole(autojump_clock):
    """It goes to the end of the clause after what the player has, and no further."""
    text = "We open at nine, we close at six, and on Sundays we are closed."
    async with open_call(agent(text), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        assert caller.call.answers.audio.saying == "We open at nine,"
        await caller.at(1.3)  # it has the comma
        assert caller.call.answers.audio.saying == "We open at nine, we close at six,"


async def test_what_was_said_long_ago_is_not_being_said(autojump_clock):
    """It begins with a whole word, at most a little before what is heard, and ends with one."""
    async with open_call(agent(LONG), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(20)
        saying = caller.call.answers.audio.saying
        before = len(caller.heard) - LONG.index(saying)
        assert BEFORE_CHARS <= before <= BEFORE_CHARS + len("word00")
        assert len(saying) - before <= AFTER_CHARS + 10
        assert set(saying.split()) <= set(LONG.split())


async def test_what_was_said_last_lingers(autojump_clock):
    """After its last word a text counts as being said for a while; its echo may come late."""
    async with open_call(agent("Good bye."), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.9 + LINGERS_S - 0.1)
        assert caller.call.answers.audio.saying == "Good bye."
        await caller.at(0.9 + LINGERS_S + 0.1)
        assert caller.call.answers.audio.saying == ""


async def test_one_text_follows_another(autojump_clock):
    """The end of what was said before belongs to it, and is a word of its own."""

    async def generate(message):
        yield AgentResponse(content="Good bye.", interruptible=False)
        yield AgentResponse(content="Or stay.")

    async def answer(call: Call) -> None:
        call.bridge(name="agent").on(UserStoppedSpeaking).stream(generate).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.2)
        assert caller.call.answers.audio.saying == "Good bye. Or stay."


async def test_a_text_without_clauses_ends_with_a_word(autojump_clock):
    """Where no clause ends, a bounded number of whole words counts."""
    async with open_call(agent("la " * 300), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1)
        saying = caller.call.answers.audio.saying
        assert set(saying.split()) == {"la"}
        assert len(saying) <= 15 + AFTER_CHARS


# --- what could cut it ----------------------------------------------------------------------------


async def test_only_a_rule_of_the_run_that_is_heard_could_cut_it(autojump_clock):
    """An event that its route names could; others could not, nor could any when all is silent."""
    async with open_call(agent("one two three"), chars_per_s=10) as caller:
        speaking = caller.call.answers
        assert not speaking.may_be_cut_by(UserStartedSpeaking)
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        assert speaking.may_be_cut_by(UserStartedSpeaking)
        assert not speaking.may_be_cut_by(DTMFInput)
        await caller.at(1.5)
        assert not speaking.may_be_cut_by(UserStartedSpeaking)


@pytest.mark.parametrize("rule", ["user.*", [DTMFInput, UserStartedSpeaking], lambda m: False])
async def test_patterns_lists_and_predicates_count(autojump_clock, rule):
    """A rule counts however it names its events; what a predicate would say is not asked."""
    async with open_call(agent("one two three", rule=rule), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        assert caller.call.answers.may_be_cut_by(UserStartedSpeaking)


async def test_a_condition_counts_as_yes(autojump_clock):
    """A condition is asked when the event comes, not before."""
    answer = agent("one two three", condition=lambda m: False)
    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        assert caller.call.answers.may_be_cut_by(UserStartedSpeaking)


async def test_what_is_not_interruptible_could_not_be_cut(autojump_clock):
    """Speech that no rule may cut could not be, and what the same run says after it could."""

    async def generate(message):
        yield AgentResponse(content="one two", interruptible=False)
        yield AgentResponse(content="three four")

    async def answer(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking)
        chain.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()

    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        assert not caller.call.answers.may_be_cut_by(UserStartedSpeaking)
        await caller.at(0.9)
        assert caller.call.answers.may_be_cut_by(UserStartedSpeaking)


@pytest.mark.parametrize("audio", [True, False])
async def test_what_is_generated_in_silence_could_be_cut(autojump_clock, audio):
    """An agent that works and says nothing could be cut, also where only text travels."""
    async with open_call(agent(""), audio=audio) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        assert caller.call.answers.may_be_cut_by(UserStartedSpeaking)
        caller.publish(UserStartedSpeaking())
        assert not caller.call.answers.may_be_cut_by(UserStartedSpeaking)


async def test_fixed_texts_could_be_cut(autojump_clock):
    """What call.say() says could be cut by the caller's voice unless it says otherwise."""
    async with open_call(agent(""), chars_per_s=10) as caller:
        call = caller.call
        call.say("one two")
        await caller.at(0.1)
        assert call.answers.may_be_cut_by(UserStartedSpeaking)
        assert call.answers.may_be_cut_by(EmergencyStop)
        assert not call.answers.may_be_cut_by(DTMFInput)
        await caller.quiet()
        call.say("one two", False)
        await trio.sleep(0.1)
        assert not call.answers.may_be_cut_by(UserStartedSpeaking)


async def test_nothing_could_be_cut_while_the_call_is_paused(autojump_clock):
    """The verb pause holds past all rules."""
    async with open_call(agent("one two three"), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        caller.call.handle.pause()
        assert not caller.call.answers.may_be_cut_by(UserStartedSpeaking)
        caller.call.handle.resume()
        assert caller.call.answers.may_be_cut_by(UserStartedSpeaking)
