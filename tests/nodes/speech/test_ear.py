"""Hearing a caller, with engines that do as the script says, in virtual time."""

import math
from contextlib import asynccontextmanager

import pytest
import structlog.testing
import trio
import trio.testing

from bargein.events import (
    AgentError,
    ListeningFailed,
    ListeningResumed,
    LogMetric,
    TurnScored,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    VoiceHint,
    VoiceSettled,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)
from bargein.speech import Ear, ListeningSettings, SilenceOnly, Transcript
from bargein.testing import open_call

FRAME_S = 0.032
VOICE, ECHO, SILENCE = b"\x01\x10" * 512, b"\x02\x10" * 512, b"\x00\x00" * 512
FAINT = b"\x01\x00" * 512
NOISE, LULL = b"\x00\x10" * 512, b"\x00\x02" * 512


class LoudIsSpeech:
    """A detector: whatever does not begin with a zero is speech."""

    frame_samples = 512

    def probability(self, frame):
        return 0.9 if frame[0] else 0.0


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


class Says:
    """A sound detector that is of one opinion."""

    after_s = 0.192

    def __init__(self, kind, probability):
        self.kind, self.says, self.heard = kind, probability, []

    def probability(self, pcm):
        self.heard.append(pcm)
        return self.says


class EchoIs:
    """An echo detector that takes frames of this value for the agent's voice."""

    def __init__(self, value):
        self.value = value

    def probability(self, frame):
        return 0.9 if frame[0] == self.value else 0.0


@asynccontextmanager
async def listening(
    engines, end_of_turn=None, sounds=(), echo=None, expect_errors=False, **settings
):
    async def answer(call):
        Ear(
            call.bridge(name="ears", is_agent=False),
            LoudIsSpeech(),
            engines,
            end_of_turn or engines,
            ListeningSettings(**settings),
            sounds=sounds,
            echo=echo,
        )

    async with open_call(answer, expect_errors=expect_errors) as caller:
        await trio.testing.wait_all_tasks_blocked()
        yield caller


async def send(caller, frame, seconds):
    for _ in range(round(seconds / FRAME_S)):
        caller.publish(UserAudio(pcm=frame))
        await trio.sleep(FRAME_S)


def times(caller, kind):
    return [round(r.at_s, 3) for r in caller.received if isinstance(r.event, kind)]


async def test_a_voice_begins_with_the_second_voiced_window(autojump_clock):
    """A start is published in the step that hears the second voiced window in a row."""
    async with listening(Engines()) as caller:
        await send(caller, SILENCE, 0.32)
        caller.publish(UserAudio(pcm=VOICE))
        assert times(caller, VoiceStarted) == []
        caller.publish(UserAudio(pcm=VOICE))
        assert times(caller, VoiceStarted) == [0.32]


async def test_a_click_is_no_voice(autojump_clock):
    """Single voiced windows begin nothing, however often they come."""
    async with listening(Engines()) as caller:
        for _ in range(5):
            await send(caller, VOICE, FRAME_S)
            await send(caller, SILENCE, 0.32)
        assert times(caller, VoiceStarted) == []


async def test_a_click_does_not_make_a_pause_longer(autojump_clock):
    """A single voiced window in a silence leaves the recogniser at its work."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.32)
        await send(caller, VOICE, FRAME_S)
        await send(caller, SILENCE, 0.64)
        assert len(caller.events(VoiceWords)) == len(times(caller, VoiceStarted)) == 1
    assert engines.cancelled == 0


async def test_a_voice_stops_soon_and_tells_for_how_long_it_was_heard(autojump_clock):
    """Two silent windows after the last voiced one the voice has stopped."""
    async with listening(Engines()) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.64)
        assert times(caller, VoiceStopped) == [pytest.approx(0.64 + FRAME_S)]
        assert [event.voiced_s for event in caller.events(VoiceStopped)] == [0.64]


async def test_words_and_score_come_as_soon_as_they_are_known(autojump_clock):
    """The engines begin in the first 0.2 s of silence; neither waits for the other."""
    async with listening(Engines()) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        (words,) = caller.events(VoiceWords)
        assert (words.content, words.final, words.segment) == ("a latte", True, 0)
        assert [event.complete for event in caller.events(TurnScored)] == [0.9]
        # 0.64 s of speech, 7 silent windows (the first 0.2 s and more), and each model's time.
        assert times(caller, VoiceWords) == [pytest.approx(0.64 + 6 * FRAME_S + 0.2)]
        assert times(caller, TurnScored) == [pytest.approx(0.64 + 6 * FRAME_S + 0.1)]


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
    assert told["listening.turn_complete"] == 0.9


async def test_the_wait_for_a_decision_is_told_when_it_is_made(autojump_clock):
    """Whoever ends the turn, the time since the last voiced window is told then."""
    async with listening(Engines()) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.64)
        caller.publish(UserStoppedSpeaking())
        (metric,) = [m for m in caller.events(LogMetric) if m.name == "listening.decided_s"]
        assert metric.value == pytest.approx(0.64 + FRAME_S)


async def test_the_recogniser_gets_the_sound_before_the_onset(autojump_clock):
    """The first sound of a word lies before the moment it is recognised as speech."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, SILENCE, 0.96)
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.0)
    quiet = len(engines.heard[0]) - len(engines.heard[0].lstrip(b"\x00"))
    assert 0.25 < quiet / 32_000 < 0.35


async def test_a_caller_who_goes_on_is_understood_whole(autojump_clock):
    """Work on a pause is thrown away when the caller goes on; the whole turn is transcribed."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.32)
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.0)
        assert len(times(caller, VoiceStarted)) == len(times(caller, VoiceStopped)) == 2
        assert len(caller.events(VoiceWords)) == 1
    assert engines.cancelled == 1
    assert engines.heard[-1].startswith(engines.heard[0])


async def test_each_pause_of_a_turn_brings_the_whole_turn(autojump_clock):
    """What is not settled is transcribed again, together with what came after it."""
    engines = Engines()
    async with listening(engines) as caller:
        for _ in range(2):
            await send(caller, VOICE, 0.64)
            await send(caller, SILENCE, 0.64)
        assert [event.segment for event in caller.events(VoiceWords)] == [0, 0]
    first, second = engines.heard
    assert second.startswith(first)
    assert len(second) > len(first) + 0.6 * 32_000


async def test_what_is_settled_is_not_heard_again(autojump_clock):
    """After VoiceSettled the recogniser gets the next sound alone."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.64)
        caller.publish(VoiceSettled())
        await send(caller, VOICE, 0.32)
        await send(caller, SILENCE, 0.64)
    assert len(engines.heard[1]) / 32_000 == pytest.approx(0.35 + 0.32 + 0.2, abs=0.05)


async def test_a_sound_before_the_settled_one_is_not_heard_after_it(autojump_clock):
    """A voice that begins right behind a settled one does not bring the end of that one along."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.128)  # too short for words to be awaited
        caller.publish(VoiceSettled())
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.64)
    quiet = len(engines.heard[0]) - len(engines.heard[0].lstrip(b"\x00"))
    assert quiet / 32_000 == pytest.approx(0.128, abs=0.001)


async def test_what_is_settled_before_its_words_are_known_still_has_words(autojump_clock):
    """A recogniser that is slower than the patience of others costs no words, and is asked once."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.256)
        caller.publish(VoiceSettled())
        await send(caller, SILENCE, 0.64)
        assert [event.content for event in caller.events(VoiceWords)] == ["a latte"]
        await send(caller, VOICE, 0.32)
        await send(caller, SILENCE, 0.64)
    assert not engines.heard[1].startswith(engines.heard[0])


async def test_a_caller_who_goes_on_before_the_words_are_known_is_understood_whole(autojump_clock):
    """What was settled without its words is transcribed together with what follows."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.256)
        caller.publish(VoiceSettled())
        await send(caller, VOICE, 0.32)
        await send(caller, SILENCE, 0.64)
        assert len(caller.events(VoiceWords)) == 1
    assert engines.heard[1].startswith(engines.heard[0])


async def test_a_voice_that_goes_on_is_still_heard_after_it_was_settled(autojump_clock):
    """No word is lost when a turn is ended in the middle of a sound."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, VOICE, 0.64)
        caller.publish(VoiceSettled())
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.64)
        assert len(times(caller, VoiceStarted)) == len(times(caller, VoiceStopped)) == 1
        assert len(caller.events(VoiceWords)) == 1
    assert len(engines.heard[0].rstrip(b"\x00")) / 32_000 == pytest.approx(0.64, abs=0.001)


async def test_a_microphone_that_falls_silent_stops_the_voice(autojump_clock):
    """Frames that stop in mid-word stop the voice after a second, and its words are found."""
    async with listening(Engines()) as caller:
        await send(caller, VOICE, 0.64)
        await trio.sleep(3)
        assert times(caller, VoiceStopped) == [pytest.approx(0.64 - FRAME_S + 1.0)]
        assert times(caller, VoiceWords) == [pytest.approx(0.64 - FRAME_S + 1.0 + 0.2)]


async def test_a_microphone_that_falls_silent_in_a_pause_costs_no_words(autojump_clock):
    """Frames that stop before the pause was long enough bring the words all the same."""
    async with listening(Engines()) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.096)
        await trio.sleep(3)
        assert len(caller.events(VoiceStopped)) == len(caller.events(VoiceWords)) == 1


async def test_a_microphone_that_comes_back_and_goes_stops_twice(autojump_clock):
    """Frames that stop twice stop the voice twice, and not for ever."""
    async with listening(Engines(takes_s=0.6)) as caller:
        await send(caller, VOICE, 0.64)
        await trio.sleep(1.2)  # taken for lost at 1.608 s, and not understood yet
        await send(caller, VOICE, 0.64)
        await trio.sleep(4)
        assert len(times(caller, VoiceStarted)) == len(times(caller, VoiceStopped)) == 2
        assert len(caller.events(VoiceWords)) == 1


async def test_a_recogniser_that_fails_is_told(autojump_clock):
    """There are no words, and the error's class says why; the next sound is heard as ever."""
    engines = Engines(fails=True)
    async with listening(engines, expect_errors="no model") as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        caller.publish(VoiceSettled())
        engines.fails = False
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        told = [(event.content, event.error) for event in caller.events(VoiceWords)]
        assert told == [("", "RuntimeError"), ("a latte", "")]
        assert [event.message for event in caller.events(AgentError)] == [
            "RuntimeError in .map(Ear._understand)"
        ]


@pytest.mark.parametrize("given", [None, "a latte", Transcript(None), Transcript("a", "b", "c")])
async def test_a_recogniser_that_gives_something_else_is_told(autojump_clock, given):
    """What is no transcript is a failure as any other, and hangs nothing."""

    class Other:
        async def transcribe(self, pcm):
            await trio.lowlevel.checkpoint()
            return given

    async with listening(Other(), SilenceOnly(), expect_errors=True) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        (words,) = caller.events(VoiceWords)
        assert words.content == ""
        assert words.error in ("AttributeError", "TypeError")


async def test_a_recogniser_that_hangs_is_given_up(autojump_clock):
    """After half a minute it is told, and what was recorded behind the sound is let go."""
    engines = Engines(takes_s=math.inf)
    hung = trio.TooSlowError
    async with listening(engines, SilenceOnly(), expect_errors=hung) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 5)
        caller.publish(VoiceSettled())  # nobody waits any more
        await send(caller, SILENCE, 27)
        assert [event.error for event in caller.events(VoiceWords)] == ["TooSlowError"]
        engines.takes_s = 0.2
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.0)
        assert [event.content for event in caller.events(VoiceWords)] == ["", "a latte"]
    assert len(engines.heard[1]) < 2 * 32_000


async def test_an_end_of_turn_model_that_fails_costs_no_words(autojump_clock):
    """Without the model's word a turn counts as not complete, and is transcribed."""

    class Broken:
        async def probability(self, pcm):
            raise RuntimeError("no model")

    async with listening(Engines(), Broken(), expect_errors="no model") as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        assert [event.complete for event in caller.events(TurnScored)] == [0.0]
        assert [event.content for event in caller.events(VoiceWords)] == ["a latte"]


async def test_long_speech_is_transcribed_in_parts(autojump_clock):
    """No word of a long turn is lost to the recogniser's limit."""
    engines = Engines()
    async with listening(engines) as caller:
        await send(caller, VOICE, 50)
        await send(caller, SILENCE, 2)
        (event,) = caller.events(VoiceWords)
        assert event.content == "a latte a latte a latte"
    assert max(map(len, engines.heard)) <= 25 * 32_000


async def test_words_are_as_sure_as_the_least_sure_part(autojump_clock):
    """The confidence of a long turn is that of its least sure part; silence has none."""

    class Unsure:
        parts = [Transcript("a latte"), Transcript("a latte", 0.7, -0.5), Transcript("", 0.9, -2.0)]

        async def transcribe(self, pcm):
            await trio.lowlevel.checkpoint()
            return self.parts.pop(0)

    async with listening(Unsure(), SilenceOnly()) as caller:
        await send(caller, VOICE, 50)
        await send(caller, SILENCE, 2)
        (event,) = caller.events(VoiceWords)
        assert event.content == "a latte a latte"
        assert event.confidence == pytest.approx(math.exp(-0.5))
    async with listening(Engines(text="")) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        assert [event.confidence for event in caller.events(VoiceWords)] == [None]


@pytest.mark.parametrize(("second", "least"), [(0.2, 0.2), (None, None)])
async def test_words_are_of_the_hint_if_all_parts_are(autojump_clock, second, least):
    """The least sure part counts; one part with other words makes them other words."""

    class Hinted:
        parts = [
            Transcript("latte", unhinted_confidence=0.6),
            Transcript("a latte", unhinted_confidence=second),
            Transcript("", 0.9, -2.0),
        ]

        async def transcribe(self, pcm):
            await trio.lowlevel.checkpoint()
            return self.parts.pop(0)

    async with listening(Hinted(), SilenceOnly()) as caller:
        await send(caller, VOICE, 50)
        await send(caller, SILENCE, 2)
        (event,) = caller.events(VoiceWords)
        assert event.unhinted_confidence == least


async def test_silence_only_takes_every_pause_for_the_end(autojump_clock):
    """Without a model each pause is complete."""
    async with listening(Engines(), SilenceOnly()) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.0)
        assert [event.complete for event in caller.events(TurnScored)] == [1.0]


async def test_the_sound_of_a_voice_is_looked_at(autojump_clock):
    """0.2 s after the onset the detector that is sure gives the hint, from the last 0.48 s."""
    unsure, sure = Says("acknowledgement", 0.4), Says("noise", 0.8)
    async with listening(Engines(), sounds=(unsure, sure)) as caller:
        await send(caller, SILENCE, 0.32)
        await send(caller, VOICE, 0.64)
        (hint,) = caller.events(VoiceHint)
        assert (hint.kind, hint.probability) == ("noise", 0.8)
        (started,), (hinted,) = times(caller, VoiceStarted), times(caller, VoiceHint)
        assert hinted - started == pytest.approx(0.192)
    assert unsure.heard == sure.heard
    assert len(sure.heard[0]) / 32_000 == pytest.approx(0.48)


async def test_a_closure_in_a_word_does_not_put_off_the_look(autojump_clock):
    """The "k" of "okay" is silent for 0.1 s: the sound is still looked at 0.2 s after its onset."""
    sound = Says("acknowledgement", 0.9)
    async with listening(Engines(), sounds=(sound,)) as caller:
        await send(caller, SILENCE, 0.32)
        await send(caller, VOICE, 0.064)
        await send(caller, SILENCE, 0.096)
        await send(caller, VOICE, 0.32)
        assert len(caller.events(VoiceStarted)) == 2
        (started, _), (hinted,) = times(caller, VoiceStarted), times(caller, VoiceHint)
        assert hinted - started == pytest.approx(0.192)


@pytest.mark.parametrize(
    ("before", "hinted_after_s"),
    [
        ([(SILENCE, 0.64), (NOISE, 0.096), (LULL, 0.096)], 0.0),
        ([(SILENCE, 0.64), (NOISE, 0.064), (SILENCE, 0.064)], 0.064),
        ([(SILENCE, 0.64), (NOISE, 0.096), (SILENCE, 0.128)], 0.192),
        ([(SILENCE, 0.64), (NOISE, 0.096)], 0.192),
        ([(NOISE, 1.6), (LULL, 0.064)], 0.192),
        ([(LULL, 0.64), (NOISE, 0.096), (LULL, 0.064), (NOISE, 0.096), (LULL, 0.064)], 0.192),
    ],
    ids=["lull", "silence", "long ago", "no closure", "long", "twice"],
)
async def test_a_syllable_that_passed_for_a_noise_is_looked_at_with_its_word(
    autojump_clock, before, hinted_after_s
):
    """An "o" that the voice detector missed belongs to its "kay"; no other noise does."""
    sound = Says("acknowledgement", 0.9)
    async with listening(Engines(), sounds=(sound,)) as caller:
        for frame, seconds in [*before, (VOICE, 0.48)]:
            await send(caller, frame, seconds)
        (started,), (hinted,) = times(caller, VoiceStarted), times(caller, VoiceHint)
        assert hinted - started == pytest.approx(hinted_after_s)


async def test_a_voice_that_stopped_before_needs_no_hint(autojump_clock):
    """What is over by itself is not looked at."""
    sound = Says("acknowledgement", 0.9)
    async with listening(Engines(), sounds=(sound,)) as caller:
        await send(caller, VOICE, 0.128)
        await send(caller, SILENCE, 0.64)
        assert caller.events(VoiceHint) == sound.heard == []


async def test_what_is_very_faint_is_no_voice(autojump_clock):
    """Whoever speaks in the next room begins nothing; a voice that fades to that has stopped."""
    async with listening(Engines()) as caller:
        await send(caller, FAINT, 1.28)
        assert times(caller, VoiceStarted) == []
        await send(caller, VOICE, 0.64)
        await send(caller, FAINT, 1.28)
        assert len(times(caller, VoiceStarted)) == len(times(caller, VoiceStopped)) == 1
    async with listening(Engines(), quietest_peak_dbfs=-100.0) as caller:
        await send(caller, FAINT, 1.28)
        assert len(times(caller, VoiceStarted)) == 1


@asynccontextmanager
async def listening_to_an_agent(engines):
    """Listen in a call whose agent speaks for some ten seconds."""
    async with listening(engines) as caller:
        caller.call.say("It is a long story, and I am going to tell all of it. " * 4)
        await trio.sleep(0.1)
        yield caller


async def test_a_voice_over_the_agent_is_understood_before_it_is_over(autojump_clock):
    """The recogniser hears it after half a second and every 0.8 s; these words are not final."""
    async with listening_to_an_agent(Engines(takes_s=0.1)) as caller:
        began_s = caller.now_s
        await send(caller, VOICE, 1.6)
        found = [(e.content, e.final) for e in caller.events(VoiceWords)]
        assert found == [("a latte", False)] * 2
        first_s, second_s = (at_s - began_s for at_s in times(caller, VoiceWords))
        assert first_s == pytest.approx(0.5 + 0.1, abs=2 * FRAME_S)
        assert second_s - first_s == pytest.approx(0.8)


async def test_what_interrupts_is_not_understood_early_again(autojump_clock):
    """Once the turn is the caller's, only its pauses are looked at."""
    async with listening_to_an_agent(Engines(takes_s=0.1)) as caller:
        await send(caller, VOICE, 0.8)
        caller.publish(UserStartedSpeaking())
        await send(caller, VOICE, 3.2)
        assert len(caller.events(VoiceWords)) == 1


async def test_a_voice_to_a_silent_agent_is_not_understood_early(autojump_clock):
    """There is nothing to hold, so the words can wait for a pause."""
    async with listening(Engines()) as caller:
        await send(caller, VOICE, 3.2)
        assert not caller.events(VoiceWords)


async def test_a_recogniser_that_fails_early_is_asked_again(autojump_clock):
    """What it fails on before the voice is over is no failure of the turn's."""
    engines = Engines(takes_s=0.1, fails=True)
    async with listening_to_an_agent(engines) as caller:
        await send(caller, VOICE, 0.8)
        assert engines.heard
        assert not caller.events(VoiceWords)
        engines.fails = False
        await send(caller, SILENCE, 0.64)
        assert [words.content for words in caller.events(VoiceWords)] == ["a latte"]


SOFTER, WEAK, WEAKER = b"\x01\x05" * 512, b"\x01\x03" * 512, b"\x01\x02" * 512
"""10, 14.5 and 18 dB below `VOICE`."""


async def says_a_turn(caller, sound=VOICE):
    """Have the ear told that what it heard was a turn."""
    await send(caller, sound, 0.64)
    await send(caller, SILENCE, 0.64)
    caller.publish(UserStoppedSpeaking())
    caller.publish(VoiceSettled())


async def test_who_is_much_weaker_than_the_caller_is_not_heard(autojump_clock):
    """A turn tells how loud the caller is; until then all voices count."""
    async with listening(Engines()) as caller:
        await send(caller, WEAK, 0.64)
        await send(caller, SILENCE, 0.64)
        caller.publish(VoiceSettled())
        assert len(times(caller, VoiceStarted)) == 1
        await says_a_turn(caller)
        await send(caller, WEAK, 3.2)
        assert len(times(caller, VoiceStarted)) == 2
        await send(caller, SOFTER, 0.64)
        assert len(times(caller, VoiceStarted)) == 3


async def test_the_voice_of_a_turn_may_fade(autojump_clock):
    """The end of a sentence is weaker than its beginning, but not as weak as the next table."""
    async with listening(Engines()) as caller:
        await says_a_turn(caller)
        await send(caller, VOICE, 0.32)
        await send(caller, WEAK, 0.64)
        assert len(times(caller, VoiceStopped)) == 1
        await send(caller, WEAKER, 0.64)
        assert len(times(caller, VoiceStopped)) == 2


async def test_a_sound_that_was_no_turn_tells_no_level(autojump_clock):
    """A door that is dropped again makes nobody else too weak."""
    async with listening(Engines()) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 0.64)
        caller.publish(VoiceSettled())
        await send(caller, WEAK, 0.64)
        assert len(times(caller, VoiceStarted)) == 2


async def test_a_caller_who_moves_away_is_heard_again(autojump_clock):
    """After ten seconds of speech too weak to count, the level is forgotten."""
    async with listening(Engines()) as caller:
        await says_a_turn(caller)
        for _ in range(6):
            await send(caller, WEAK, 1.6)
            await send(caller, SILENCE, 0.32)
        assert len(times(caller, VoiceStarted)) == 1
        await send(caller, WEAK, 0.96)
        assert len(times(caller, VoiceStarted)) == 2


async def test_a_caller_who_becomes_softer_is_followed(autojump_clock):
    """Each turn counts for half of the level."""
    async with listening(Engines()) as caller:
        await says_a_turn(caller)
        await says_a_turn(caller, SOFTER)
        await send(caller, WEAK, 0.64)
        assert len(times(caller, VoiceStarted)) == 3


async def test_the_level_can_be_turned_off(autojump_clock):
    """Without it all voices count."""
    async with listening(Engines(), below_caller_db=None) as caller:
        await says_a_turn(caller)
        await send(caller, WEAKER, 0.64)
        assert len(times(caller, VoiceStarted)) == 2


async def test_a_turn_ends_in_babble_that_does_not(autojump_clock):
    """Babble 10 dB below the caller keeps no voice open, once two seconds have shown it."""
    async with listening(Engines()) as caller:
        await send(caller, SOFTER, 1.6)
        await send(caller, VOICE, 0.96)
        assert not times(caller, VoiceStopped)
        await send(caller, SOFTER, 0.96)
        assert len(times(caller, VoiceStopped)) == 1
        assert [words.content for words in caller.events(VoiceWords)] == ["a latte"]


async def test_a_caller_is_heard_in_babble(autojump_clock):
    """Babble that was nobody's turn begins no voice any more, and who is 10 dB louder does."""
    async with listening(Engines()) as caller:
        await send(caller, SOFTER, 6.4)
        await send(caller, SILENCE, 0.32)
        caller.publish(VoiceSettled())
        assert len(times(caller, VoiceStarted)) == 1
        await send(caller, SOFTER, 1.6)
        assert len(times(caller, VoiceStarted)) == 1
        await send(caller, VOICE, 0.32)
        assert len(times(caller, VoiceStarted)) == 2


async def test_who_speaks_without_a_pause_is_no_background(autojump_clock):
    """A voice that goes on for long is close to its own loud moments."""
    async with listening(Engines()) as caller:
        await send(caller, VOICE, 16)
        assert len(times(caller, VoiceStarted)) == 1
        assert not times(caller, VoiceStopped)


async def test_the_background_can_be_turned_off(autojump_clock):
    """Without it what never stops may be a voice."""
    async with listening(Engines(), above_background_db=None) as caller:
        await send(caller, SOFTER, 1.6)
        await send(caller, VOICE, 0.96)
        await send(caller, SOFTER, 3.2)
        assert not times(caller, VoiceStopped)


async def test_an_echo_is_no_voice(autojump_clock):
    """The agent's own voice begins nothing; a caller who talks over it is heard."""
    async with listening(Engines(), echo=EchoIs(2)) as caller:
        await send(caller, ECHO, 1.28)
        assert times(caller, VoiceStarted) == []
        await send(caller, VOICE, 0.64)
        assert len(times(caller, VoiceStarted)) == 1
        await send(caller, ECHO, 1.28)
        assert len(times(caller, VoiceStopped)) == len(caller.events(VoiceWords)) == 1


async def test_an_echo_that_was_taken_for_a_voice_is_told(autojump_clock):
    """What turns out to be an echo after the onset gets a hint, and stops."""
    async with listening(Engines(), echo=EchoIs(2)) as caller:
        await send(caller, VOICE, 0.096)
        await send(caller, ECHO, 0.32)
        (hint,) = caller.events(VoiceHint)
        assert (hint.kind, hint.probability) == ("echo", 0.9)
        assert len(times(caller, VoiceStopped)) == 1


@pytest.mark.parametrize(("echo_s", "hinted_after_s"), [(0.096, 0.096), (0.32, 0.0), (1.28, 0.192)])
async def test_a_voice_that_passed_for_an_echo_gets_its_hint_in_time(
    autojump_clock, echo_s, hinted_after_s
):
    """The hint is due 0.2 s after the sound began, though a voice like the agent's is noticed late;
    what was an echo for long was no part of it."""
    sound = Says("acknowledgement", 0.9)
    async with listening(Engines(), sounds=(sound,), echo=EchoIs(2)) as caller:
        await send(caller, SILENCE, 0.32)
        await send(caller, ECHO, echo_s)
        await send(caller, VOICE, 0.48)
        (started,), (hinted,) = times(caller, VoiceStarted), times(caller, VoiceHint)
        assert hinted - started == pytest.approx(hinted_after_s)
    assert len(sound.heard[0]) / 32_000 == pytest.approx(0.48)


class DiesSometimes(LoudIsSpeech):
    """A detector whose model is gone for a while."""

    def __init__(self):
        self.is_dead = False

    def probability(self, frame):
        if self.is_dead:
            raise RuntimeError("the model is gone")
        return super().probability(frame)


@asynccontextmanager
async def listening_by(vad, engines):
    async def answer(call):
        bridge = call.bridge(name="ears", is_agent=False)
        Ear(bridge, vad, engines, engines, ListeningSettings())

    async with open_call(answer, expect_errors=RuntimeError) as caller:
        await trio.testing.wait_all_tasks_blocked()
        yield caller


async def test_an_ear_that_is_dead_says_so(autojump_clock):
    """One event, one line and one AgentError in ten seconds of audio; the snapshot shows it."""
    vad = DiesSometimes()
    with structlog.testing.capture_logs() as logs:
        async with listening_by(vad, Engines()) as caller:
            assert caller.call.snapshot().listening_error == ""
            vad.is_dead = True
            await send(caller, VOICE, 10)
            assert [e.error for e in caller.events(ListeningFailed)] == ["RuntimeError"]
            assert len(caller.events(AgentError)) == 1
            assert caller.call.snapshot().listening_error == "RuntimeError"
            vad.is_dead = False
            await send(caller, SILENCE, 2)
            (resumed,) = caller.events(ListeningResumed)
            assert resumed.failed_s == pytest.approx(11, abs=0.1), "sure after a second"
            assert caller.call.snapshot().listening_error == ""
            vad.is_dead = True
            await send(caller, VOICE, 1)
            assert len(caller.events(ListeningFailed)) == 2
    failed = [line for line in logs if line["event"] == "stage_failed"]
    assert len(failed) == 2
    (again,) = [line for line in logs if line["event"] == "works_again"]
    assert again["withheld"] == pytest.approx(312, abs=2)


async def test_an_ear_that_dies_in_mid_word_stops_the_voice(autojump_clock):
    """The voice stops as with a microphone that is lost, and what was heard becomes words."""
    vad = DiesSometimes()
    async with listening_by(vad, Engines()) as caller:
        await send(caller, VOICE, 0.64)
        vad.is_dead = True
        await send(caller, VOICE, 5)
        assert times(caller, VoiceStopped) == [pytest.approx(0.64 - FRAME_S + 1.0)]
        assert len(caller.events(VoiceWords)) == 1
        vad.is_dead = False
        await send(caller, SILENCE, 2)
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1)
        assert len(caller.events(VoiceStopped)) == len(caller.events(VoiceWords)) == 2


async def test_a_dead_ear_keeps_no_audio(autojump_clock):
    """Long frames fail window by window, and leave nothing that piles up."""
    vad = DiesSometimes()
    engines = Engines()
    async with listening_by(vad, engines) as caller:
        vad.is_dead = True
        await send(caller, VOICE * 10, 10)
        vad.is_dead = False
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1)
        (heard,) = engines.heard
        assert len(heard) / 32_000 < 0.64 + 0.35 + 0.25, "the voice, with its pre-roll and pause"
