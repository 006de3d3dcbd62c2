"""Hearing a caller, with engines that do as the script says, in virtual time."""

from contextlib import asynccontextmanager

import pytest
import trio

from bridge.events import (
    LogMetric,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bridge.testing import open_call
from nodes.speech import ListeningSettings, SilenceOnly, Transcript
from nodes.speech._ear import Ear

FRAME_S = 0.032
VOICE, SILENCE = b"\x01\x00" * 512, b"\x00\x00" * 512


class LoudIsSpeech:
    """A detector: whatever is not zero is speech."""

    frame_samples = 512

    def probability(self, frame):
        return 0.9 if frame[0] else 0.0

    def reset(self):
        pass


class Engines:
    """A recogniser and an end-of-turn model that take their time."""

    def __init__(self, text="a latte", complete=0.9, takes_s=0.2, fails=False):
        self.text, self.complete, self.takes_s, self.fails = text, complete, takes_s, fails
        self.heard = []
        self.cancelled = 0

    async def transcribe(self, pcm):
        self.heard.append(pcm)
        try:
            await trio.sleep(self.takes_s)
        except trio.Cancelled:
            self.cancelled += 1
            raise
        if self.fails:
            raise RuntimeError("no model")
        return Transcript(self.text)

    async def probability(self, pcm):
        await trio.sleep(self.takes_s / 2)
        return self.complete


@asynccontextmanager
async def listening(engines, end_of_turn=None, **settings):
    async def answer(call):
        Ear(
            call.bridge(name="ears", is_agent=False),
            LoudIsSpeech(),
            engines,
            end_of_turn or engines,
            ListeningSettings(**settings),
        )

    async with open_call(answer) as caller:
        await trio.testing.wait_all_tasks_blocked()
        yield caller


async def send(caller, frame, seconds):
    for _ in range(round(seconds / FRAME_S)):
        caller.publish(UserAudio(pcm=frame))
        await trio.sleep(FRAME_S)


def times(caller, kind):
    return [round(r.at_s, 3) for r in caller.received if isinstance(r.event, kind)]


async def test_speech_begins_with_the_second_voiced_window(autojump_clock):
    """A start is published in the step that hears the second voiced window in a row."""
    async with listening(Engines()) as caller:
        await send(caller, SILENCE, 0.32)
        caller.publish(UserAudio(pcm=VOICE))
        assert times(caller, UserStartedSpeaking) == []
        caller.publish(UserAudio(pcm=VOICE))
        assert times(caller, UserStartedSpeaking) == [0.32]


async def test_a_click_is_no_speech(autojump_clock):
    """One voiced window alone begins nothing."""
    async with listening(Engines()) as caller:
        await send(caller, VOICE, FRAME_S)
        await send(caller, SILENCE, 1.0)
        assert times(caller, UserStartedSpeaking) == []


async def test_a_complete_turn_ends_as_soon_as_it_is_transcribed(autojump_clock):
    """The engines begin in the first silence, and the turn ends when both have answered."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        assert [e.content for e in caller.events(UserTranscriptionReceived)] == ["a latte"]
        # 0.64 s of speech, 7 silent windows (the first 0.2 s and more), 0.2 s of transcription.
        assert times(caller, UserStoppedSpeaking) == [pytest.approx(0.64 + 6 * FRAME_S + 0.2)]


async def test_each_model_is_timed_on_its_own(autojump_clock):
    """They work at the same time; the figure of one does not hold the wait for the other."""

    class Ponders:
        async def probability(self, pcm):
            await trio.sleep(0.3)
            return 0.9

    async with listening(Engines(), end_of_turn=Ponders()) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        told = {event.name: event.value for event in caller.events(LogMetric)}
    assert told["listening.stt_s"] == pytest.approx(0.2)
    assert told["listening.end_of_turn_s"] == pytest.approx(0.3)
    # From the last voiced window: 7 silent ones, the first 0.2 s and more, and the slower model.
    assert told["listening.decided_s"] == pytest.approx(7 * FRAME_S + 0.3)


async def test_the_recogniser_gets_the_sound_before_the_onset(autojump_clock):
    """The first sound of a word lies before the moment it is recognised as speech."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, SILENCE, 0.96)
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.0)
    quiet = len(engines.heard[0]) - len(engines.heard[0].lstrip(b"\x00"))
    assert 0.25 < quiet / 32_000 < 0.35


@pytest.mark.parametrize(("complete", "pause_s"), [(0.0, 1.0), (0.1, 0.84), (0.25, 0.6)])
async def test_an_incomplete_turn_waits_for_the_caller(complete, pause_s, autojump_clock):
    """The surer the model is that more will come, the longer it waits; with an interim before."""
    async with listening(Engines(complete=complete)) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        transcripts = caller.events(UserTranscriptionReceived)
        assert [event.final for event in transcripts] == [False, True]
        (stopped,) = times(caller, UserStoppedSpeaking)
        assert stopped == pytest.approx(0.64 - FRAME_S + pause_s, abs=0.001)


async def test_a_caller_who_goes_on_is_not_cut_off(autojump_clock):
    """Work on a pause is thrown away when the caller goes on; the turn is transcribed whole."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.32)
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.0)
        assert len(times(caller, UserStartedSpeaking)) == len(times(caller, UserStoppedSpeaking))
        assert len(times(caller, UserStoppedSpeaking)) == 1
    assert engines.cancelled == 1
    assert len(engines.heard[-1]) > len(engines.heard[0])


async def test_two_turns_are_two(autojump_clock):
    """After a turn the next one is heard the same way."""
    async with listening(Engines()) as caller:
        for _ in range(2):
            await send(caller, VOICE, 0.64)
            await send(caller, SILENCE, 1.6)
        assert len(times(caller, UserStartedSpeaking)) == 2
        assert len(times(caller, UserStoppedSpeaking)) == 2


async def test_a_microphone_that_falls_silent_ends_the_turn(autojump_clock):
    """Frames that stop in mid-word end the turn within a second and a transcription."""
    async with listening(Engines()) as caller:
        await send(caller, VOICE, 0.64)
        await trio.sleep(3)
        (stopped,) = times(caller, UserStoppedSpeaking)
        assert stopped == pytest.approx(0.64 - FRAME_S + 1.0 + 0.2, abs=0.01)


async def test_a_recogniser_that_fails_still_ends_the_turn(autojump_clock):
    """A failing engine is told, and the caller's turn ends without words."""
    async with listening(Engines(fails=True)) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        assert caller.events(UserTranscriptionReceived) == []
        assert len(times(caller, UserStoppedSpeaking)) == 1


async def test_an_end_of_turn_model_that_fails_costs_no_words(autojump_clock):
    """Without the model's word the turn ends after the longest pause, transcribed."""

    class Broken:
        async def probability(self, pcm):
            raise RuntimeError("no model")

    async with listening(Engines(), Broken()) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        assert caller.events(UserTranscriptionReceived)[-1].content == "a latte"
        assert times(caller, UserStoppedSpeaking) == [pytest.approx(1.608, abs=0.001)]


async def test_a_microphone_that_comes_back_and_goes_ends_the_turn(autojump_clock):
    """Frames that stop twice in one turn end it once, and not never."""
    async with listening(Engines(complete=0.0, takes_s=0.6)) as caller:
        await send(caller, VOICE, 0.64)
        await trio.sleep(1.2)  # taken for lost at 1.608 s, and not decided yet
        await send(caller, VOICE, 0.64)
        await trio.sleep(4)
        assert len(times(caller, UserStartedSpeaking)) == 1
        assert len(times(caller, UserStoppedSpeaking)) == 1


async def test_noise_without_words_is_a_turn_without_a_transcript(autojump_clock):
    """A start is followed by a stop also when no words were understood."""
    async with listening(Engines(text="")) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        assert caller.events(UserTranscriptionReceived) == []
        assert len(times(caller, UserStoppedSpeaking)) == 1


async def test_long_speech_is_transcribed_in_parts(autojump_clock):
    """No word of a long turn is lost to the recogniser's limit."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, VOICE, 50)
        await send(caller, SILENCE, 2)
        (event,) = caller.events(UserTranscriptionReceived)
        assert event.content == "a latte a latte a latte"
    assert max(map(len, engines.heard)) <= 25 * 32_000


async def test_silence_only_takes_every_pause_for_the_end(autojump_clock):
    """Without a model each pause ends the turn."""
    async with listening(Engines(), SilenceOnly()) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.0)
        assert len(times(caller, UserStoppedSpeaking)) == 1
