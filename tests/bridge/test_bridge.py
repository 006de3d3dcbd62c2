"""Barge-in, from the event to what is remembered; 10 characters are said in a second."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest
import trio
import trio.testing

from bargein import Call, Interruption, Message
from bargein.events import (
    AgentAudio,
    AgentGenerationComplete,
    AgentResponse,
    AgentSpeechCut,
    AgentSpeechSent,
    AgentStoppedSpeaking,
    EmergencyStop,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.testing import Caller, open_call

Generate = Callable[[Message], AsyncIterator[object]]


def says(*texts: str, every_s: float = 0.0, **options: bool) -> Generate:
    """A generator of an answer that takes its time for each piece."""

    async def generate(message: Message) -> AsyncIterator[object]:
        for text in texts:
            await trio.sleep(every_s)
            yield AgentResponse(content=text, **options)

    return generate


def answering(generate: Generate, **rule: object) -> Callable[[Call], object]:
    async def answer(call: Call) -> None:
        bridge = call.bridge(name="agent")
        (
            bridge.on(UserStoppedSpeaking)
            .interrupt_on(UserStartedSpeaking, **rule)
            .stream(generate)
            .broadcast()
        )

    return answer


def kinds(caller: Caller, *wanted: type) -> list[object]:
    return [item.event for item in caller.received if isinstance(item.event, wanted)]


async def test_heard_text_is_cut_at_the_last_whole_word(autojump_clock):
    """What was played at the barge-in is kept to the word; the rest is told as never heard."""
    async with open_call(answering(says("One two three four")), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        caller.publish(UserStartedSpeaking())
        (cut,) = caller.events(AgentSpeechCut)
        assert (cut.heard, cut.unheard, cut.basis) == ("One two", " three four", "words")
        assert cut.at_ms == pytest.approx(1000)
        assert caller.heard == "One two"
        await caller.quiet()
        (record,) = caller.call.history.interruptions
    assert (record.heard, record.generated) == ("One two", "One two three four")
    assert (record.verb, record.by, record.cause) == ("barge_in", "caller", "user.started_speaking")
    assert (record.phase, record.basis, record.answer) == ("speaking", "words", 1)
    assert (record.at_s, record.elapsed_s) == (pytest.approx(1.0), pytest.approx(1.0))


async def test_silence_comes_in_the_step_of_the_interrupt(autojump_clock):
    """The transport is told to clear before publish() returns, and plays nothing after it."""
    async with open_call(answering(says("One two three four five six")), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        with trio.testing.assert_no_checkpoints():
            caller.publish(UserStartedSpeaking())
            assert [number for _, number in caller.cleared] == [1]
        played = len(caller.played)
        await caller.at(5.0)
        assert len(caller.played) == played
        order = [type(e) for e in kinds(caller, AgentSpeechCut, UserStartedSpeaking)]
        assert order == [AgentSpeechCut, UserStartedSpeaking]


async def test_nothing_of_a_cut_run_follows(autojump_clock):
    """A run that is cut while it generates says nothing more, and ends once, as interrupted."""
    pieces = [f"{word} " for word in ["one", "two", "three", "four", "five", "six", "seven"]]
    async with open_call(answering(says(*pieces, every_s=0.3)), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        was = caller.call.current_state
        caller.publish(UserStartedSpeaking())
        cut_at = len(caller.received)
        await caller.at(9.0)
        late = [item.event for item in caller.received[cut_at:]]
        assert not [e for e in late if isinstance(e, (AgentResponse, AgentSpeechSent, AgentAudio))]
        (complete,) = caller.events(AgentGenerationComplete)
        assert (complete.outcome, complete.content) == ("interrupted", "one two three ")
        (record,) = caller.call.history.interruptions
        assert record.phase == was == "speaking"  # what is heard goes before what is generated
        assert record.heard == "one two"


async def test_cut_before_the_first_token(autojump_clock):
    """An answer that said nothing leaves its record, no words, and the next turn works."""
    async with open_call(answering(says("Hello", every_s=2.0)), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        (complete,) = caller.events(AgentGenerationComplete)
        assert (complete.outcome, complete.content) == ("interrupted", "")
        assert not caller.events(AgentSpeechCut)
        assert caller.cleared == []
        assert caller.call.history.interruptions[0].generated == ""
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "Hello"


async def test_cut_before_the_first_audio(autojump_clock):
    """Text whose audio was never sent is unheard, and no fence is needed."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="Supercali")  # a word that goes on is not said yet
        await trio.sleep(5)
        yield AgentResponse(content="fragilistic")

    async with open_call(answering(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        caller.publish(UserStartedSpeaking())
        assert caller.cleared == []
        (cut,) = caller.events(AgentSpeechCut)
        assert (cut.heard, cut.unheard, cut.at_ms) == ("", "Supercali", 0.0)
        assert not caller.events(AgentStoppedSpeaking)
        assert caller.heard == ""


async def test_cut_after_all_was_generated_calls_the_handler(autojump_clock):
    """A finished answer that is still being said can be cut; its handler is told so, once."""
    told: list[Interruption] = []

    async def handler(message: Message, interruption: Interruption) -> None:
        assert isinstance(message.event, UserStartedSpeaking)
        told.append(interruption)

    answer = answering(says("One two three four"), handler=handler)
    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        (complete,) = caller.events(AgentGenerationComplete)
        assert complete.outcome == "completed"
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        assert [i.phase for i in told] == ["delivered"]
        assert len(caller.events(AgentGenerationComplete)) == 1
        assert caller.events(AgentStoppedSpeaking)[0].cut


async def test_words_in_the_tick_in_which_the_speech_ends(autojump_clock):
    """What was played to its end counts as heard, and no interruption is put down."""
    answer = answering(says("One two"))
    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.7)
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        assert caller.heard == "One two"
        assert caller.call.history.interruptions == ()
        assert not caller.events(AgentSpeechCut)
        assert [e.cut for e in caller.events(AgentStoppedSpeaking)] == [False]


async def test_an_interrupt_while_idle_does_nothing(autojump_clock):
    """Nothing running, no marker, no handler; the next input is answered."""
    told: list[object] = []
    answer = answering(says("Yes"), handler=told.append)
    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStartedSpeaking())
        await caller.quiet()
        assert told == []
        assert caller.call.history.entries == ()
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert (caller.heard, told) == ("Yes", [])


async def test_three_starts_in_a_row_cut_once(autojump_clock):
    """A repeated start of speech finds nothing to cut, and the answer comes after the stop."""
    told: list[object] = []
    answer = answering(says("One two three four"), handler=told.append)
    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.5)
        for _ in range(3):
            caller.publish(UserStartedSpeaking())
            await trio.sleep(0.01)
        await caller.says("go on", takes_s=0.5)
        await caller.quiet()
        assert len(told) == len(caller.call.history.interruptions) == 1
        assert caller.heard == "One\nOne two three four"
        assert len(caller.events(AgentGenerationComplete)) == 2


async def test_input_while_the_old_run_cleans_up(autojump_clock):
    """Words 5 ms after the barge-in wait for the clean-up, are kept, and are answered."""
    heard_by_node: list[str] = []

    async def generate(message: Message) -> AsyncIterator[object]:
        heard_by_node.append(f"{trio.current_time():.3f}")
        try:
            yield AgentResponse(content="One two three four")
            await trio.sleep(5)
        finally:
            with trio.move_on_after(0.2, shield=True):
                await trio.sleep(1)

    async with open_call(answering(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        caller.publish(UserStartedSpeaking())
        await caller.at(1.005)
        caller.publish(UserTranscriptionReceived(content="no wait"))
        caller.publish(UserStoppedSpeaking())
        await caller.at(3.5)
        assert heard_by_node == ["0.000", "1.200"]
        texts = [e.content for e in caller.call.history if e.role == "user"]
        assert texts == ["no wait"]
        assert caller.heard.rstrip() == "One two\nOne two three"  # the last word may still go on


async def test_a_run_that_swallows_its_cancellation_delays_nobody(autojump_clock):
    """A node that never unwinds is abandoned after a second; its answer ends, the next begins."""
    runs = 0

    async def generate(message: Message) -> AsyncIterator[object]:
        nonlocal runs
        runs += 1
        if runs == 1:
            yield AgentResponse(content="One two three four")
            with trio.CancelScope(shield=True):
                await trio.sleep(60)
            yield AgentResponse(content="never")
        else:
            yield AgentResponse(content="Yes")

    async with open_call(answering(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        await caller.says("stop", takes_s=0.5)
        await caller.receives(AgentGenerationComplete)
        assert caller.now_s == pytest.approx(2.0, abs=0.002)
        await caller.quiet()
        assert caller.heard == "One two\nYes"
        outcomes = [e.outcome for e in caller.events(AgentGenerationComplete)]
        assert outcomes == ["interrupted", "completed"]


async def test_late_audio_of_a_cut_answer_is_never_played(autojump_clock):
    """Audio that a voice gives for a cut utterance is dropped, also while the next one is said."""
    async with open_call(answering(says("One two three four")), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        await caller.says("no", takes_s=0.2)
        await caller.at(1.5)
        late = AgentAudio(pcm=bytes(2000), sample_rate_hz=1000, text="late", utterance=1)
        caller.call.publish(late, source="voice")
        await caller.quiet()
        assert {number for _, number, _ in caller.played[-5:]} == {2}
        assert sum(ms for _, number, ms in caller.played if number == 2) == 1800
        assert caller.heard == "One two\nOne two three four"


async def test_speech_that_may_not_be_cut_is_heard_to_its_end(autojump_clock):
    """The flag ends with its utterance, and the words said meanwhile are kept and answered."""
    turn = 0

    async def generate(message: Message) -> AsyncIterator[object]:
        nonlocal turn
        turn += 1
        if turn == 1:
            yield AgentResponse(content="This is recorded. ", interruptible=False)
            yield AgentResponse(content="How can I help you today?")
        else:
            yield AgentResponse(content="Sure")

    async with open_call(answering(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.says("coffee", at_s=0.5, takes_s=0.5)
        assert caller.cleared == []
        await caller.at(2.5)  # 0.7 s into the second utterance
        caller.publish(UserStartedSpeaking())
        cut = caller.events(AgentSpeechCut)
        assert [(c.utterance, c.heard) for c in cut] == [(2, "How can"), (3, "")]
        assert caller.heard == "This is recorded. How can"
        texts = [e.content for e in caller.call.history if e.role == "user"]
        assert texts == ["coffee"]


async def test_words_during_uncuttable_speech_are_answered_after_it(autojump_clock):
    """The answer to what was said meanwhile is heard behind the protected speech."""

    async def generate(message: Message) -> AsyncIterator[object]:
        first = message.id == 1 or not caller.call.history.entries
        text = "This is recorded." if first else "Sure"
        yield AgentResponse(content=text, interruptible=not first)

    async with open_call(answering(generate), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.says("coffee", at_s=0.5, takes_s=0.5)
        await caller.quiet()
        assert caller.now_s == pytest.approx(2.1)
        assert caller.heard == "This is recorded.\nSure"
        assert caller.call.history.interruptions == ()


async def test_an_emergency_stop_cuts_what_may_not_be_cut(autojump_clock):
    """EmergencyStop goes past the flag and every condition, and its record says so."""
    answer = answering(says("This is recorded.", interruptible=False), condition=lambda m: False)
    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(1.0)
        caller.publish(EmergencyStop(reason="stop_key"))
        assert caller.heard == "This is"
        (record,) = caller.call.history.interruptions
        assert (record.verb, record.cause) == ("emergency_stop", "call.emergency_stop")
        await caller.quiet()
        assert caller.now_s == pytest.approx(1.0)


async def test_an_emergency_stop_cuts_speech_that_no_run_gave(autojump_clock):
    """What was published outside of any run is silenced too, and put down as stopped."""

    async def answer(call: Call) -> None:
        call.bridge(name="agent").publish(AgentResponse(content="One two three four"))

    async with open_call(answer, chars_per_s=10) as caller:
        await caller.at(1.0)
        caller.publish(UserStartedSpeaking())
        assert not caller.events(AgentSpeechCut)  # no route says that it may be cut
        caller.publish(EmergencyStop())
        assert caller.heard == "One two"
        (record,) = caller.call.history.interruptions
        assert (record.verb, record.phase, record.elapsed_s) == ("emergency_stop", "speaking", 1.0)
        assert [e.outcome for e in caller.events(AgentGenerationComplete)] == ["completed"]


async def test_a_condition_that_says_no_keeps_the_speech_going(autojump_clock):
    """The words said meanwhile stay in the history, in order, and are answered afterwards."""
    answer = answering(says("One two three"), condition=lambda message: False)
    async with open_call(answer, chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.says("but", at_s=0.5, takes_s=0.3)
        await caller.quiet()
        assert caller.heard == "One two three\nOne two three"
        assert [e.role for e in caller.call.history] == ["agent", "user", "agent"]
        assert caller.now_s == pytest.approx(2.6)


async def test_a_handler_that_raises_or_hangs_is_bounded(autojump_clock):
    """A failing handler is told as AgentError, a hanging one is given up after a second."""
    ways = iter(["raise", "hang"])

    async def handler() -> None:
        if next(ways) == "raise":
            raise RuntimeError("clean-up")
        await trio.sleep(100)

    starts: list[float] = []

    async def generate(message: Message) -> AsyncIterator[object]:
        starts.append(round(trio.current_time(), 3))
        yield AgentResponse(content="One two three four")

    async with open_call(
        answering(generate, handler=handler), chars_per_s=10, expect_errors=RuntimeError
    ) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.says("a", at_s=1.0, takes_s=0.1)
        await caller.says("b", at_s=2.0, takes_s=0.1)
        await caller.quiet()
        assert starts == [0.0, 1.1, 3.0]
        assert caller.heard == "One two\nOne two\nOne two three four"
        assert ["RuntimeError" in e.event.message for e in caller.received if
                type(e.event).__name__ == "AgentError"] == [True]  # fmt: skip


async def test_a_bridge_tells_its_place(autojump_clock):
    """A bridge knows its call, node, name and floor, and publishes under its own name."""
    node = object()

    async def answer(call: Call) -> None:
        first, second = call.bridge(node), call.bridge(name="second")
        assert (first.node, first.name, first.has_floor, second.has_floor) == (
            node, "object", True, False,
        )  # fmt: skip
        assert repr(first) == "<Bridge 'object' of call 'test'>"
        assert second.publish(EmergencyStop()).source == "second"

    async with open_call(answer) as caller:
        assert not [e for e in caller.received if type(e.event).__name__ == "AgentError"]
        assert [e.source for e in caller.received][:1] == ["second"]


async def test_a_bridge_that_leaves_answers_no_more(autojump_clock):
    """Its routes begin no more runs; what is being said is heard to its end."""
    async with open_call(answering(says("One two")), chars_per_s=10) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(0.2)
        caller.call.bridges[1].leave()
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "One two"
        assert len(caller.events(AgentGenerationComplete)) == 1
