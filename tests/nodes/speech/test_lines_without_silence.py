"""Lines that send nothing while nobody speaks: telephones with DTX, microphones that are muted."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bargein.events import (
    ListeningFailed,
    TranscriptionFailed,
    UserAudio,
    VoiceStarted,
    VoiceStopped,
)
from bargein.fallback import Fallback
from bargein.testing import ScriptedModel, open_call

from .failing import RATE_HZ
from .hearing import Engines, LoudIsSpeech, listening
from .test_streaming_ears import ScriptedEar, agent_with, turns_of
from .test_turns_that_are_taken import VENDORS, WORD, app_with, proofs, send, speak
from .word_vendor import WordVendor, ear_at

COMFORT = bytes(640)
"""A frame of noise, which some telephones send now and then."""


async def be_away(caller: Any, seconds: float, every_s: float | None = None) -> None:
    """Send nothing, or only a frame now and then."""
    until_s = trio.current_time() + seconds
    while every_s is not None and trio.current_time() + every_s <= until_s:
        await trio.sleep(every_s)
        caller.publish(UserAudio(pcm=COMFORT))
    await trio.sleep_until(until_s)


@pytest.mark.parametrize("vad", [None, *proofs(LoudIsSpeech)])
@pytest.mark.parametrize("name", ["flux", *proofs(*[name for name in VENDORS if name != "flux"])])
async def test_two_utterances_on_a_line_without_silence(autojump_clock, name, vad):
    """Both are answered, each once; a minute in which nothing comes costs no line and no word."""
    make, fake = VENDORS[name]
    model = ScriptedModel(then="Hi.")
    vendor = fake("hello there", "a latte")
    async with vendor.open():
        ear = make(api_key="any", base_url="ws://fake", dial=vendor.dial)
        async with open_call(app_with(ear, model, vad=vad), own_speech=True) as caller:
            await send(caller, 2 * WORD)
            await be_away(caller, 5.0)
            assert turns_of(caller) == ["hello there"]
            await send(caller, 2 * WORD)
            await be_away(caller, 60.0)
            assert turns_of(caller) == ["hello there", "a latte"]
            assert (len(model.requests), vendor.lines) == (2, 1)
            for failure in (ListeningFailed, TranscriptionFailed):
                assert caller.events(failure) == []


@pytest.mark.parametrize("every_s", [None, *proofs(0.16, 0.4)])
async def test_silence_is_filled_in_in_real_time(autojump_clock, every_s):
    """The ear gets as much sound as time passes, and nothing but the frames while they come."""
    ear = ScriptedEar()
    async with open_call(agent_with(ear)) as caller:
        for _ in range(2):
            await send(caller, WORD)
            await be_away(caller, 10.0, every_s)
            await send(caller, 5 * WORD)
        said = [part for part in bytes(ear.heard).split(bytes(12_800)) if part]
        assert len(ear.heard) / 2 / RATE_HZ == pytest.approx(2 * 11.2, abs=0.3)
    assert [part.strip(b"\0") for part in said if part.strip(b"\0")] == [
        piece.strip(b"\0") for piece in (WORD, 5 * WORD + WORD, 5 * WORD)
    ]


async def test_frames_without_sound_are_silence_that_was_left_out(autojump_clock):
    """A client that sends empty frames while nobody speaks sends no sound."""
    ear = ScriptedEar()
    async with open_call(agent_with(ear)) as caller:
        await send(caller, WORD)
        for _ in range(100):
            caller.publish(UserAudio(pcm=b""))
            await trio.sleep(0.05)
        assert len(ear.heard) / 2 / RATE_HZ == pytest.approx(5.2, abs=0.2)


async def test_a_network_that_stands_still_is_no_silence(autojump_clock):
    """What comes late, all at once, is heard without anything between."""
    ear = ScriptedEar()
    frames = [bytes([n, 1]) * 1600 for n in range(1, 31)]
    async with open_call(agent_with(ear)) as caller:
        for number, frame in enumerate(frames):
            caller.publish(UserAudio(pcm=frame))
            if not 10 <= number < 17:  # 0.7 s come at once
                await trio.sleep(0.8 if number == 9 else 0.1)
    assert bytes(ear.heard) == b"".join(frames)


async def test_a_muted_microphone_gets_little_silence(autojump_clock):
    """After two minutes the vendor gets only what keeps its line open; then all is heard again."""
    ear = ScriptedEar()
    async with open_call(agent_with(ear)) as caller:
        await send(caller, WORD)
        await be_away(caller, 120.0)
        first = len(ear.heard)
        assert first / 2 / RATE_HZ == pytest.approx(120.0, abs=1.5)
        await be_away(caller, 600.0)
        assert (len(ear.heard) - first) / 2 / RATE_HZ == pytest.approx(20.0, abs=1.0)
        await send(caller, 2 * WORD)
        await trio.sleep(0.01)
        assert bytes(ear.heard).endswith(2 * WORD)


async def test_a_caller_who_never_sends_anything_gets_no_silence(autojump_clock):
    """A client without a microphone costs its vendor's time as little as before."""
    ear = ScriptedEar()
    async with open_call(agent_with(ear)):
        await trio.sleep(60.0)
    assert ear.heard == b""


async def test_silence_that_nobody_sent_is_not_how_quiet_the_line_is(autojump_clock):
    """The hum of a line is no voice after a gap, as it was none before."""
    hum, ear = b"\x00\x08\x00\xf8" * 800, ScriptedEar()
    async with open_call(agent_with(ear)) as caller:
        for _ in range(3):
            await send(caller, 20 * hum)
            await be_away(caller, 3.0)
        assert caller.events(VoiceStarted) == []
        assert ear.closed == 0


async def test_several_ears_hear_the_silence(autojump_clock):
    """Ears behind a fallback end turns on such a line, and none is found deaf for its silence."""
    first, second = WordVendor(), WordVendor()
    async with first.open(), second.open():
        app = app_with(Fallback(ear_at(first), ear_at(second)))
        async with open_call(app, own_speech=True) as caller:
            await speak(caller, "hello there")
            await be_away(caller, 5.0)
            await speak(caller, "one latte")
            await be_away(caller, 30.0)
            assert turns_of(caller) == ["hello there", "one latte"]
            assert (first.lines, second.lines) == (1, 0)


@pytest.mark.parametrize("every_s", [None, 0.4])
async def test_our_own_detector_stops_a_voice_on_such_a_line(autojump_clock, every_s):
    """A second without sound stops it, even if the line sends a frame of noise now and then."""
    voice = b"\x01\x10" * 512
    async with listening(Engines()) as caller:
        for _ in range(2):
            for _ in range(20):
                caller.publish(UserAudio(pcm=voice))
                await trio.sleep(0.032)
            spoke_s = caller.now_s
            await be_away(caller, 5.0, every_s)
            stopped_s = [r.at_s for r in caller.received if isinstance(r.event, VoiceStopped)][-1]
            assert stopped_s - spoke_s == pytest.approx(1.0, abs=0.25)
        assert len(caller.events(VoiceStarted)) == len(caller.events(VoiceStopped)) == 2


async def test_a_vendor_that_hangs_on_such_a_line_is_replaced(autojump_clock):
    """The silence that it gets counts, and its turn is answered once."""
    vendor = WordVendor(2)
    async with vendor.open(), open_call(app_with(ear_at(vendor)), own_speech=True) as caller:
        await speak(caller, "hello there")
        await be_away(caller, 20.0)
        await speak(caller, "one latte")
        await be_away(caller, 5.0)
        assert turns_of(caller) == ["hello there", "one latte"]
        assert vendor.lines == 2
