"""Words of a turn that the voice detector takes for no voice are heard by their loudness."""

import pytest

from bargein.events import (
    UserStartedSpeaking,
    UserStoppedSpeaking,
    VoiceSettled,
    VoiceStarted,
    VoiceStopped,
)
from tests.nodes.speech.hearing import (
    SILENCE,
    VOICE,
    Engines,
    LoudIsSpeech,
    listening,
    send,
    times,
)

MISSED = b"\x00\x10" * 512
"""As loud as `VOICE`, and no voice for the detector."""
SOFT, BABBLE = b"\x00\x04" * 512, b"\x00\x03" * 512
"""12 and 14.5 dB below `VOICE`."""


async def begins_a_turn(caller, gap=SILENCE):
    """Have a caller speak, of whom turn taking says that the turn is theirs."""
    await send(caller, VOICE, 0.32)
    caller.publish(UserStartedSpeaking())
    await send(caller, gap, 0.4)


async def test_a_missed_word_goes_on_with_the_turn(autojump_clock):
    """A voice begins with its fifth window, and stops two windows behind it."""
    async with listening(Engines()) as caller:
        await begins_a_turn(caller)
        await send(caller, MISSED, 0.32)
        await send(caller, SILENCE, 0.32)
        started, stopped = times(caller, VoiceStarted), times(caller, VoiceStopped)
        assert len(started) == len(stopped) == 2
        assert stopped[1] - started[1] == pytest.approx(0.32 + 0.064 - 5 * 0.032, abs=0.001)


async def test_a_word_is_missed_only_in_a_turn(autojump_clock):
    """Before a turn, and once it is settled, only the detector says what is a voice."""
    async with listening(Engines()) as caller:
        await send(caller, MISSED, 0.96)
        assert not times(caller, VoiceStarted)
        await begins_a_turn(caller)
        await send(caller, SILENCE, 0.64)
        caller.publish(VoiceSettled())
        await send(caller, MISSED, 0.96)
        assert len(times(caller, VoiceStarted)) == 1


async def test_no_word_is_missed_after_a_typed_turn(autojump_clock):
    """Typed words are a turn without a voice, so nothing settles its sound."""
    async with listening(Engines()) as caller:
        caller.publish(UserStartedSpeaking())
        caller.publish(UserStoppedSpeaking())
        await send(caller, SILENCE, 1.0)
        await send(caller, VOICE, 0.32)
        await send(caller, MISSED, 0.64)
        started, stopped = times(caller, VoiceStarted), times(caller, VoiceStopped)
        assert stopped[0] - started[0] < 0.4


async def test_a_detector_with_long_frames_misses_nothing(autojump_clock, monkeypatch):
    """A frame of 0.3 s is longer than a word, and not each one is a voice."""
    monkeypatch.setattr(LoudIsSpeech, "frame_samples", 4800)
    async with listening(Engines()) as caller:
        await send(caller, SILENCE, 0.96)
        await send(caller, VOICE, 2.88)
        caller.publish(UserStartedSpeaking())
        await send(caller, SILENCE, 9.6)
        assert len(times(caller, VoiceStarted)) == len(times(caller, VoiceStopped)) == 1


@pytest.mark.parametrize(
    ("sound", "lasts_s"), [(MISSED, 0.096), (SOFT, 0.64)], ids=["a knock", "a soft noise"]
)
async def test_a_short_or_soft_noise_is_no_word(autojump_clock, sound, lasts_s):
    """A word lasts for four windows, and is at most 10 dB below the others of its turn."""
    async with listening(Engines()) as caller:
        await begins_a_turn(caller)
        await send(caller, sound, lasts_s)
        await send(caller, SILENCE, 0.32)
        assert len(times(caller, VoiceStarted)) == 1


async def test_a_noise_that_lasts_keeps_no_turn_open(autojump_clock):
    """A second is longer than a word."""
    async with listening(Engines()) as caller:
        await begins_a_turn(caller)
        await send(caller, MISSED, 3.2)
        started, stopped = times(caller, VoiceStarted), times(caller, VoiceStopped)
        assert len(started) == len(stopped) == 2
        assert 0.8 < stopped[1] - started[1] < 1.0


async def test_beside_babble_no_word_is_missed(autojump_clock):
    """Where even the quietest moments are loud, a loud sound may be anybody's."""
    async with listening(Engines(), first=BABBLE) as caller:
        await begins_a_turn(caller, gap=BABBLE)
        await send(caller, MISSED, 0.32)
        await send(caller, BABBLE, 0.32)
        assert len(times(caller, VoiceStarted)) == 1
