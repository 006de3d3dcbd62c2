"""A speech-to-speech model that hears over lines that break, hang, or leave out silence."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
import trio

from bargein.events import (
    ListeningFailed,
    UserAudio,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)
from bargein.fakes import FakeOpenAIRealtime, Fault

from .calling import calling

LOUD, QUIET = b"\x00\x10" * 1600, bytes(3200)
"""0.1 s of sound, and of silence."""


async def send(caller: Any, frame: bytes, seconds: float) -> None:
    for _ in range(round(seconds / 0.1)):
        caller.publish(UserAudio(frame))
        await trio.sleep(0.1)


def turns_of(caller: Any) -> list[str]:
    return [e.content for e in caller.events(UserTranscriptionReceived) if e.final]


@pytest.mark.parametrize("is_turn", [True, False])
async def test_a_new_line_gets_no_sound_that_our_ears_have_decided_on(
    autojump_clock, vendor, is_turn
):
    """The audio of a turn, or of a noise, is not part of the next turn on another line."""
    async with calling(vendor, hears=False) as caller:
        caller.publish(VoiceStarted())
        await send(caller, LOUD, 1.0)
        caller.publish(VoiceWords(content="a latte" if is_turn else ""))
        caller.publish(VoiceStopped())
        await send(caller, QUIET, 8.0)
        assert len(caller.events(UserStoppedSpeaking)) == is_turn
        vendor.line.line.cut()
        await send(caller, QUIET, 2.0)
        assert vendor.lines == 2
        assert vendor.line.audio == b""
        caller.publish(VoiceStarted())
        await send(caller, LOUD, 0.5)
        loud = [sample for sample in array("h", vendor.line.audio) if abs(sample) > 1000]
        assert len(loud) / 24_000 == pytest.approx(0.5, abs=0.1)


@pytest.mark.proof
async def test_two_utterances_on_a_line_without_silence(autojump_clock):
    """The model answers both, each once, and a minute without frames costs nothing."""
    async with FakeOpenAIRealtime("Sure.", words="a latte").open() as vendor:
        async with calling(vendor) as caller:
            for _ in range(2):
                await send(caller, LOUD, 0.5)
                await trio.sleep(5.0)
            await trio.sleep(60.0)
            assert turns_of(caller) == ["a latte", "a latte"]
            assert caller.heard.split() == ["Sure.", "Sure."]
            assert caller.events(ListeningFailed) == []
        assert vendor.lines == 1


@pytest.mark.proof
async def test_a_turn_of_which_the_vendor_tells_no_words_is_answered_once(autojump_clock):
    """It hangs before it has written what it heard; the next line hears the turn again."""
    fake = FakeOpenAIRealtime("Sure.", words="a latte", fault=Fault("stall", "words"))
    async with fake.open() as vendor, calling(vendor, errors=True) as caller:
        await send(caller, LOUD, 0.5)
        await send(caller, QUIET, 30.0)
        assert turns_of(caller) == ["a latte"]
        await send(caller, LOUD, 0.5)
        await send(caller, QUIET, 10.0)
        assert turns_of(caller) == ["a latte", "a latte"]
