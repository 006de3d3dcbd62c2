"""The audio of voices, and of players that report; 10 characters are said in a second."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from typing import Literal

import pytest
import structlog
import trio

from bargein import App, Call, Event, Message
from bargein.events import (
    AgentAudio,
    AgentAudioComplete,
    AgentError,
    AgentResponse,
    AgentSpeechCut,
    AgentSpeechSent,
    AgentStoppedSpeaking,
    EmergencyStop,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    WordTiming,
)
from bargein.testing import open_call

VOICE_S = 10.0


class Chime(Event):
    type: Literal["tests.voiced.chime"] = "tests.voiced.chime"


class Player:
    """A caller's side that keeps what it is given and reports nothing by itself."""

    audio = True
    sample_rate_hz = 1000

    def __init__(self) -> None:
        self.events: list[object] = []
        self.played_ms: dict[int, int] = {}
        self.cleared: list[int] = []

    def send(self, message: Message) -> None:
        self.events.append(message.event)

    def play(self, utterance: int, pcm: bytes) -> None:
        self.played_ms[utterance] = self.played_ms.get(utterance, 0) + len(pcm) // 2

    def clear(self, utterance: int, reason: str) -> None:
        self.cleared.append(utterance)

    def of(self, kind: type) -> list[object]:
        return [event for event in self.events if isinstance(event, kind)]


def agent(generate: object, **rule: object) -> object:
    async def answer(call: Call) -> None:
        chain = call.bridge(name="agent").on(UserStoppedSpeaking)
        chain.interrupt_on(UserStartedSpeaking, **rule).stream(generate).broadcast()

    return answer


async def silent(call: Call) -> None:
    """An agent that says nothing by itself."""
    call.bridge(name="agent")


class Voice:
    """A voice whose every act a test decides."""

    def __init__(self, speak: object) -> None:
        self.speak = speak

    def open(self) -> object:
        raise AssertionError("open_call() of an app loads nothing")

    def attach(self, call: Call) -> None:
        call.bridge(name="voice", is_agent=False).on(AgentResponse).stream(self.speak).broadcast()


async def run_voice(speak: object, until_s: float) -> tuple[Player, Call, str | None]:
    player = Player()
    said: str | None = None
    async with App(silent, speech=Voice(speak)).open_call(player) as call:  # type: ignore[arg-type]
        with trio.move_on_after(until_s):
            said = await call.say("Hello there")
        return player, call, said


async def test_a_voice_that_fails_on_its_piece(autojump_clock):
    """The failure is told, the text counts as unheard, and the answer failed."""

    async def speak(message: Message) -> AsyncIterator[object]:
        raise RuntimeError("engine")
        yield

    player, call, said = await run_voice(speak, 60)
    assert said == "failed"
    assert trio.current_time() == pytest.approx(VOICE_S)
    messages = [e.message for e in player.of(AgentError)]
    assert messages[0] == "RuntimeError in .stream(speak)"
    assert "no audio for utterance 1" in messages[1]
    assert call.history.entries[0].heard == ""


async def test_a_voice_that_breaks_off(autojump_clock):
    """What was played is heard, the rest is not, and the speech counts as cut short."""

    async def speak(message: Message) -> AsyncIterator[object]:
        yield AgentAudio(bytes(1000), 1000, "Hello ", utterance=1)

    player, call, said = await run_voice(speak, 60)
    assert said == "failed"
    assert call.history.entries[0].heard == "Hello"
    assert [e.cut for e in player.of(AgentStoppedSpeaking)] == [True]
    assert player.of(AgentSpeechCut) == []


@pytest.mark.parametrize(
    "pieces",
    [
        ["Hello  there"],
        [" Hello there "],
        ["Hello ", " there"],
        ["Hello", "there"],
        ["HELLO,", "there"],
    ],
)
async def test_a_voice_may_write_spaces_otherwise(autojump_clock, pieces):
    """Its words are heard as they stand in the text, whatever spaces and case it gives with its
    audio."""

    async def speak(message: Message) -> AsyncIterator[object]:
        for piece in pieces:
            yield AgentAudio(bytes(1000), 1000, piece, utterance=1)
        yield AgentAudioComplete(utterance=1)

    player, _, said = await run_voice(speak, 60)
    assert said == "completed"
    assert [e.content for e in player.of(AgentSpeechSent)] == ["Hello", " there"]


async def test_words_with_spaces_around_them_are_heard_at_their_times(autojump_clock):
    """The spaces that a voice leaves around its words do not put off when they are heard."""
    words = (WordTiming(" Hello", 0.0, 0.5), WordTiming(" there ", 0.5, 1.0))

    async def speak(message: Message) -> AsyncIterator[object]:
        yield AgentAudio(bytes(4000), 1000, "Hello there", words, utterance=1)
        yield AgentAudioComplete(utterance=1)

    player, _, said = await run_voice(speak, 60)
    assert said == "completed"
    assert [e.content for e in player.of(AgentSpeechSent)] == ["Hello", " there"]


async def test_a_voice_that_says_other_words_is_told(autojump_clock):
    """Words that stand nowhere in the text count as unheard, and an error says why, once."""

    async def speak(message: Message) -> AsyncIterator[object]:
        yield AgentAudio(bytes(1000), 1000, "GOODBYE ", utterance=1)
        yield AgentAudio(bytes(1000), 1000, "NOW", utterance=1)
        yield AgentAudioComplete(utterance=1)

    player, call, said = await run_voice(speak, 60)
    assert said == "failed"
    assert call.history.entries[0].heard == ""
    (message,) = [e.message for e in player.of(AgentError)]
    assert "text is no part of utterance 1" in message
    assert "GOODBYE" not in message


async def test_audio_of_a_wrong_rate_is_refused_and_told_once(autojump_clock):
    """The message names both rates; nothing of it is played."""

    async def speak(message: Message) -> AsyncIterator[object]:
        for _ in range(3):
            yield AgentAudio(bytes(320), 16_000, "Hello there", utterance=1)
        yield AgentAudioComplete(utterance=1)

    with structlog.testing.capture_logs() as logs:
        player, _, said = await run_voice(speak, 60)
    assert said == "failed"
    assert player.played_ms == {}
    errors = [e.message for e in player.of(AgentError)]
    assert errors == ["'voice' gave audio at 16000 Hz; this call plays 1000 Hz"]
    (told, *_) = [entry for entry in logs if entry["event"] == "audio_of_wrong_rate"]
    assert (told["got_hz"], told["needed_hz"]) == (16_000, 1000)


async def test_an_agent_may_bring_its_own_audio(autojump_clock):
    """Audio without a number belongs to the newest utterance of the run that gives it."""

    async def generate(message: Message) -> AsyncIterator[object]:
        yield AgentResponse(content="Ding dong")
        yield AgentAudio(bytes(1800), 1000, "Ding dong")
        yield AgentAudioComplete(utterance=1)
        await trio.sleep(3)
        yield AgentAudio(bytes(1800), 1000, "too late")

    player = Player()
    async with App(agent(generate)).open_call(player) as call:  # type: ignore[arg-type]
        call.publish(UserStoppedSpeaking())
        await trio.sleep(5)
        assert player.played_ms == {1: 900}
        assert call.history.entries[0].heard == "Ding dong"


@pytest.mark.parametrize(
    ("number", "known"), [(0, "its answer has said no text"), (2, "1 so far"), (-1, "1 so far")]
)
async def test_audio_of_nobody_is_an_error(autojump_clock, number, known):
    """The error says where the number comes from; it is told once, and fails a test."""

    async def speak(message: Message) -> AsyncIterator[object]:
        for _ in range(3):
            yield AgentAudio(bytes(320), 1000, "Hello there", utterance=number)

    async def answer(call: Call) -> None:
        call.bridge(name="bell", is_agent=False).on(Chime).stream(speak).broadcast()

    async with open_call(answer, expect_errors=ValueError) as caller:
        caller.call.say("Hello there")
        await trio.sleep(0.1)
        caller.publish(Chime())
        await caller.quiet()
    [error] = map(str, caller.errors)
    assert f"'bell' gave audio for the unknown utterance {number} ({known})" in error
    assert "bridge.utterance_of(message)" in error
    assert [e.message for e in caller.events(AgentError)] == [error]
    assert caller.heard == "Hello there"


async def test_a_voice_learns_that_its_audio_came_too_late(autojump_clock):
    """Audio after the end of its utterance is an error that names both, told once."""

    async def speak(message: Message) -> AsyncIterator[object]:
        yield AgentAudioComplete(utterance=1)
        for _ in range(3):
            await trio.sleep(1)
            yield AgentAudio(bytes(2200), 1000, "Hello there", utterance=1)

    player = Player()
    async with App(silent, speech=Voice(speak)).open_call(player) as call:  # type: ignore[arg-type]
        assert await call.say("Hello there") == "failed"
        await trio.sleep(5)
    [told] = [e.message for e in player.of(AgentError) if "after AgentAudioComplete" in e.message]
    assert told.startswith("'voice' gave audio for utterance 1 after AgentAudioComplete")


async def test_a_player_that_reports(autojump_clock):
    """Through the call: the flush report decides what was heard, and the record is edited."""

    async def speak(message: Message) -> AsyncIterator[object]:
        yield AgentAudio(bytes(2200), 1000, "Hello there", utterance=1)
        yield AgentAudioComplete(utterance=1)

    player = Player()
    async with App(silent, speech=Voice(speak)).open_call(player) as call:  # type: ignore[arg-type]
        handle = call.say("Hello there")
        await trio.sleep(0.1)
        call.report_playback(1, 0, "start")
        await trio.sleep(0.4)
        call.report_playback(1, 380, "position")
        await trio.sleep(0.2)
        call.report_playback(1, 480, "position")
        call.publish(UserStartedSpeaking())
        assert player.cleared == [1]
        assert call.history.interruptions[0].heard == ""
        assert not player.of(AgentSpeechCut)
        assert handle.outcome is None  # its last word is not known yet
        assert handle.interrupt().reason == "something else cut the answer"
        call.report_playback(1, 560, "flushed")
        assert (handle.outcome, handle.heard) == ("interrupted", "Hello")
        (record,) = call.history.interruptions
        assert (record.heard, record.basis) == ("Hello", "reported")
        (cut,) = player.of(AgentSpeechCut)
        assert (cut.heard, cut.unheard, cut.at_ms) == ("Hello", " there", 560)
        assert call.answers.audio.utterance(1) is None


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, -1.0])
async def test_a_player_that_reports_nonsense(autojump_clock, wrong):
    """No number from the network ends a call or moves what was heard; the log names it."""

    async def speak(message: Message) -> AsyncIterator[object]:
        yield AgentAudio(bytes(2200), 1000, "Hello there", utterance=1)
        yield AgentAudioComplete(utterance=1)

    player = Player()
    async with App(silent, speech=Voice(speak)).open_call(player) as call:  # type: ignore[arg-type]
        handle = call.say("Hello there")
        await trio.sleep(0.1)
        call.report_playback(1, 0, "start")
        with structlog.testing.capture_logs() as logs:
            call.report_playback(1, wrong, "done")
            call.report_playback(wrong, 100, "position")  # type: ignore[arg-type]
        assert [line["event"] for line in logs] == ["playback_report_ignored"] * 2
        assert repr(wrong) in logs[0]["reason"]
        assert handle.heard == ""
        assert await handle == "completed"


async def test_silence_waits_for_the_flush(autojump_clock):
    """What was said is over once what was heard of it is settled."""

    async def speak(message: Message) -> AsyncIterator[object]:
        yield AgentAudio(bytes(2200), 1000, "Hello there", utterance=1)
        yield AgentAudioComplete(utterance=1)

    async with App(silent, speech=Voice(speak)).open_call(Player()) as call:  # type: ignore[arg-type]
        call.say("Hello there")
        await trio.sleep(0.1)
        call.report_playback(1, 100, "position")
        call.publish(EmergencyStop())
        await call.answers.silence()
        assert trio.current_time() == pytest.approx(0.25)
