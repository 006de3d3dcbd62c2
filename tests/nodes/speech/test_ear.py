"""Hearing a caller, with engines that do as the script says, in virtual time."""

import math
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from bargein.events import (
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
from bargein.speech import SilenceOnly, Transcript
from tests.nodes.speech.hearing import (
    FRAME_S,
    SILENCE,
    VOICE,
    Engines,
    Says,
    listening,
    send,
    times,
)

NOISE, LULL = b"\x00\x10" * 512, b"\x00\x02" * 512
FAINT = b"\x01\x01" * 512
"""A window of voice that is 24 dB weaker than a usual one."""


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
    assert told["listening.recogniser_s"] == pytest.approx(0.2)
    assert told["listening.end_of_turn_s"] == pytest.approx(0.3)
    assert told["listening.turn_complete"] == 0.9


async def test_the_wait_for_a_decision_is_told_when_it_is_made(autojump_clock):
    """Any end of a turn publishes the time since the last voiced window."""
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
    """The audio of a voice right after a settled one does not include the end of that one."""
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
    """A voice can start again after frames have stopped, and stop again with them."""
    async with listening(Engines(takes_s=0.6)) as caller:
        await send(caller, VOICE, 0.64)
        await trio.sleep(1.2)  # taken for lost at 1.608 s, and not understood yet
        await send(caller, VOICE, 0.64)
        await trio.sleep(4)
        assert len(times(caller, VoiceStarted)) == len(times(caller, VoiceStopped)) == 2
        assert len(caller.events(VoiceWords)) == 1


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


@pytest.mark.parametrize("number", [-0.3, 1.2, math.nan, math.inf])
async def test_a_number_that_is_no_share_costs_no_words(autojump_clock, number):
    """A recogniser of your own that reports a logarithm, say, is as good as one that reports
    none."""

    class Recogniser:
        async def transcribe(self, pcm):
            await trio.lowlevel.checkpoint()
            return Transcript("a latte", unhinted_confidence=number, ending_confidence=number)

    async with listening(Recogniser(), SilenceOnly()) as caller:
        await send(caller, VOICE, 0.64)
        await send(caller, SILENCE, 1.6)
        (event,) = caller.events(VoiceWords)
        assert (event.content, event.error) == ("a latte", "")
        assert event.unhinted_confidence is event.ending_confidence is None


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


async def test_a_voice_that_stopped_before_is_classified_at_the_same_time(autojump_clock):
    """The classifier of a short word is asked as long after the onset as that of a long one."""
    sound = Says("acknowledgement", 0.9)
    async with listening(Engines(), sounds=(sound,)) as caller:
        await send(caller, SILENCE, 0.128)
        await send(caller, VOICE, 0.128)
        await send(caller, SILENCE, 0.64)
        [started], [stopped], [hinted] = (
            times(caller, kind) for kind in (VoiceStarted, VoiceStopped, VoiceHint)
        )
        assert hinted - started == pytest.approx(sound.after_s, abs=0.033)
        assert hinted > stopped


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


async def test_a_voice_that_stops_is_understood_at_once(autojump_clock):
    """Words at the first silence are tentative, since it may be a gap; later ones are not."""
    async with listening_to_an_agent(Engines(takes_s=0.05)) as caller:
        await send(caller, VOICE, 0.256)
        stopped_s = caller.now_s
        await send(caller, SILENCE, 0.64)
        found = [(e.final, e.tentative) for e in caller.events(VoiceWords)]
        assert found == [(False, True), (True, False)]
        told_s = times(caller, VoiceWords)[0] - stopped_s
        assert told_s == pytest.approx(0.05, abs=FRAME_S / 2)


async def test_a_voice_that_stops_soon_after_it_was_heard_is_heard_again(autojump_clock):
    """What the look after half a second has missed shows at the stop, not in the pause behind."""
    async with listening_to_an_agent(Engines(takes_s=0.05)) as caller:
        await send(caller, VOICE, 0.608)
        await send(caller, SILENCE, 0.096)
        assert [e.tentative for e in caller.events(VoiceWords)] == [False, True]
        await send(caller, SILENCE, 0.64)
        found = [(e.final, e.tentative) for e in caller.events(VoiceWords)]
        assert found == [(False, False), (False, True), (True, False)]


async def test_a_gap_that_is_none_is_forgotten(autojump_clock):
    """A voice that is weak for one window has not stopped, and is heard again when it stops."""
    engines = Engines(takes_s=0.05)
    async with listening_to_an_agent(engines) as caller:
        for _ in range(2):
            await send(caller, VOICE, 0.128)
            assert caller.events(VoiceWords) == []
            await send(caller, SILENCE, FRAME_S)
        await send(caller, SILENCE, 0.128)
        assert [e.tentative for e in caller.events(VoiceWords)] == [True]
        assert (len(engines.heard), engines.cancelled) == (2, 1)


async def test_a_voice_that_fades_is_understood_before_it_stops(autojump_clock):
    """The recogniser begins where the voice becomes weak; its words are told with the stop."""
    async with listening_to_an_agent(Engines(takes_s=0.08)) as caller:
        await send(caller, VOICE, 0.192)
        await send(caller, FAINT, 0.096)
        await send(caller, SILENCE, 0.128)
        assert [e.tentative for e in caller.events(VoiceWords)] == [True]
        assert times(caller, VoiceWords) == times(caller, VoiceStopped)


async def test_a_closure_in_a_word_is_no_end(autojump_clock):
    """What was understood of a voice that became weak is dropped if it becomes loud again."""
    engines = Engines(takes_s=0.05)
    async with listening_to_an_agent(engines) as caller:
        await send(caller, VOICE, 0.128)
        for closure_s in (FRAME_S, 0.128):  # shorter and longer than the recogniser's work
            await send(caller, FAINT, closure_s)
            await send(caller, VOICE, FRAME_S)
        assert caller.events(VoiceWords) == []
        assert (len(engines.heard), engines.cancelled) == (2, 1)
        await send(caller, SILENCE, 0.128)
        assert len(engines.heard) == 3
        assert [e.tentative for e in caller.events(VoiceWords)] == [True]


async def test_the_look_after_half_a_second_does_not_end_with_a_closure(autojump_clock):
    """It replaces the look at a weak voice, and the voice that goes on leaves it at its work."""
    engines = Engines(takes_s=0.1)
    async with listening_to_an_agent(engines) as caller:
        await send(caller, VOICE, 0.448)
        await send(caller, FAINT, 0.096)
        await send(caller, VOICE, 0.192)
        assert [e.tentative for e in caller.events(VoiceWords)] == [False]
        assert (len(engines.heard), engines.cancelled) == (2, 1)


async def test_no_words_in_a_gap_are_told_too(autojump_clock):
    """That a sound has no words is known before the silence behind it has been heard."""
    async with listening_to_an_agent(Engines(text="", takes_s=0.05)) as caller:
        await send(caller, VOICE, 0.256)
        await send(caller, SILENCE, 0.64)
        found = [(e.content, e.final, e.tentative) for e in caller.events(VoiceWords)]
    assert found == [("", False, True), ("", True, False)]


async def test_gaps_that_follow_each_other_quickly_are_one(autojump_clock):
    """A voice in tatters does not keep the recogniser busy."""
    async with listening_to_an_agent(Engines(takes_s=0.01)) as caller:
        for _ in range(3):
            await send(caller, VOICE, 0.064)
            await send(caller, SILENCE, 0.064)
        assert [e.tentative for e in caller.events(VoiceWords)] == [True, True]


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
    """A failure of the recogniser before the voice is over does not fail the turn."""
    engines = Engines(takes_s=0.1, fails=True)
    async with listening_to_an_agent(engines) as caller:
        await send(caller, VOICE, 0.8)
        assert engines.heard
        assert not caller.events(VoiceWords)
        engines.fails = False
        await send(caller, SILENCE, 0.64)
        told = [(words.content, words.final) for words in caller.events(VoiceWords)]
        assert told == [("a latte", False), ("a latte", True)]
