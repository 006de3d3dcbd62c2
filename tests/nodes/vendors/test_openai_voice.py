"""OpenAI's voice against a fake of its endpoint, in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from bargein import App, Call
from bargein.events import AgentResponse, AgentSpeechCut, UserStartedSpeaking, UserStoppedSpeaking
from bargein.fakes import FakeOpenAIVoice, Fault
from bargein.speech import Speech, SpeechNotOpenError, SpeechPiece, TextSaid, VoiceStyle
from bargein.testing import open_call
from bargein.vendors import VendorError
from bargein.voices import OpenAIVoice

CHAR_S = 0.05
BYTES_PER_S = 48_000


class Vendor(FakeOpenAIVoice):
    """The vendor, which notes when it begins to make a piece of audio."""

    made_at_s = 0.0

    def made_s(self, event: Any) -> float:
        self.made_at_s = trio.current_time()
        return super().made_s(event)


@asynccontextmanager
async def open_voice(
    fault: Fault | None = None, **options: Any
) -> AsyncIterator[tuple[OpenAIVoice, Vendor]]:
    """Open the voice in front of its vendor's fake."""
    async with Vendor(fault=fault).open() as vendor:
        voice = OpenAIVoice(
            "coral",
            api_key="s3cret",
            base_url="http://fake/v1",
            transport=vendor.transport(),
            random=lambda: 0.0,
            **options,
        )
        async with voice.open():
            yield voice, vendor


async def receive_all(context: Any) -> tuple[float, int]:
    """Return how much audio came, and how many flushes were answered."""
    audio_s, flushes = 0.0, 0
    while (piece := await context.receive()) is not None:
        if isinstance(piece, TextSaid):
            flushes += 1
        else:
            assert len(piece.pcm) % 2 == 0
            audio_s += len(piece.pcm) / BYTES_PER_S
    return audio_s, flushes


async def test_each_flush_is_a_request_whose_audio_streams(autojump_clock):
    """Text up to a flush is one request; its audio comes in whole samples, in order."""
    async with (
        open_voice(instructions="Speak calmly.") as (voice, vendor),
        voice.open_context(VoiceStyle()) as context,
    ):
        await context.send("One large ")
        await context.send("latte. ")
        await context.flush()
        await context.send("Anything else?")
        await context.flush()
        await context.end()
        audio_s, flushes = await receive_all(context)
    assert audio_s == pytest.approx(len("One large latte. Anything else? ") * CHAR_S, abs=0.001)
    assert flushes == 2
    first, second = vendor.requests
    assert first == {
        "model": "gpt-4o-mini-tts",
        "voice": "coral",
        "input": "One large latte.",
        "instructions": "Speak calmly.",
        "response_format": "pcm",
        "stream_format": "audio",
    }
    assert second["input"] == "Anything else?"
    assert "s3cret" not in repr(voice)


async def test_the_style_goes_with_each_request(autojump_clock):
    """Voice, speed and emotion of a style take the place of what the voice was made with."""
    style = VoiceStyle(voice="cedar", speed=1.2, emotion="cheerful")
    async with (
        open_voice(speed=0.9) as (voice, vendor),
        voice.open_context(style) as context,
    ):
        await context.send("Hi.")
        await context.end()
        await receive_all(context)
    (body,) = vendor.requests
    assert (body["voice"], body["speed"]) == ("cedar", 1.2)
    assert body["instructions"] == "Sound cheerful."


@pytest.mark.parametrize("left_s", [0.0, 0.001, 0.03, 0.1, 0.2, 0.5])
async def test_leaving_early_ends_the_request(autojump_clock, left_s):
    """Wherever an utterance is left, nothing more of it is made, and the next one works."""
    async with open_voice() as (voice, vendor):
        async with voice.open_context(VoiceStyle()) as context:
            await context.send("One large latte with oat milk. " * 5)
            await context.flush()
            with trio.move_on_after(left_s):
                await receive_all(context)
        made_at_s = vendor.made_at_s
        await trio.sleep(1)
        assert vendor.made_at_s == made_at_s
        async with voice.open_context(VoiceStyle()) as context:
            await context.send("Two.")
            await context.end()
            assert (await receive_all(context))[0] == pytest.approx(5 * CHAR_S, abs=0.001)


@pytest.mark.parametrize(
    "fault", [Fault("refuse", "connect", 1, 503), Fault("drop", "connect"), Fault("drop", "first")]
)
async def test_what_nothing_came_of_is_asked_for_again(autojump_clock, fault):
    """A refusal that may pass, and a connection that breaks at once, cost time alone."""
    async with open_voice(fault) as (voice, _), voice.open_context(VoiceStyle()) as context:
        await context.send("Hello.")
        await context.end()
        audio_s, _ = await receive_all(context)
    assert audio_s == pytest.approx(7 * CHAR_S, abs=0.001)


async def test_a_connection_that_breaks_in_mid_clause_is_an_error(autojump_clock):
    """What was half said is not said again."""
    async with (
        open_voice(Fault("drop", "middle")) as (voice, vendor),
        voice.open_context(VoiceStyle()) as context,
    ):
        await context.send("Hello there.")
        await context.end()
        assert isinstance(await context.receive(), SpeechPiece)
        with pytest.raises(VendorError, match="RemoteProtocolError"):
            await receive_all(context)
        assert len(vendor.requests) == 1


@pytest.mark.parametrize("at", ["first", "middle"])
async def test_a_voice_that_stalls_is_an_error(autojump_clock, at):
    """An endpoint that sends nothing is given up, before its first audio and amid it."""
    async with (
        open_voice(Fault("stall", at), attempts=1, first_audio_s=2.0, next_audio_s=1.0) as opened,
        opened[0].open_context(VoiceStyle()) as context,
    ):
        await context.send("Hello there.")
        await context.end()
        with pytest.raises(VendorError, match="no audio for"):
            await receive_all(context)


async def test_a_wrong_key_fails_at_once(autojump_clock):
    """What the vendor refuses for good is not asked twice, and the key is in no text."""
    async with (
        open_voice(Fault("refuse", "connect", 1, 401)) as (voice, vendor),
        voice.open_context(VoiceStyle()) as context,
    ):
        await context.send("Hello.")
        await context.end()
        with pytest.raises(VendorError) as caught:
            await receive_all(context)
        assert caught.value.status == 401
        assert "s3cret" not in str(caught.value)
        assert not vendor.requests  # a second one would have been answered


async def test_a_voice_that_is_not_open_says_so(autojump_clock):
    """Opening a context of a closed voice raises an error that says what to do."""
    with pytest.raises(SpeechNotOpenError, match="async with"):
        async with OpenAIVoice(api_key="k").open_context(VoiceStyle()):
            pass


def test_settings_that_are_none_are_refused(monkeypatch):
    """A missing key and a WebSocket's address are errors where the voice is made."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        OpenAIVoice()
    with pytest.raises(ValueError, match="https://"):
        OpenAIVoice(api_key="k", base_url="wss://api.openai.com")


# --- in a call ------------------------------------------------------------------------------------

WORDS = ["Sure thing, ", "one latte ", "for you. ", "Anything else today?"]


@asynccontextmanager
async def speaking() -> AsyncIterator[tuple[Any, Vendor]]:
    """Open a call whose agent says words, one after the other."""

    async def generate(message: Any) -> AsyncIterator[AgentResponse]:
        for word in WORDS:
            await trio.sleep(0.05)
            yield AgentResponse(content=word)

    async def answer(call: Call) -> None:
        on_stop = call.bridge(name="agent").on(UserStoppedSpeaking)
        on_stop.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()

    async with open_voice() as (voice, vendor):
        app = App(answer, speech=Speech(voice=voice, fillers=None))
        async with open_call(app, own_speech=True) as caller:
            yield caller, vendor


async def test_a_call_hears_every_word(autojump_clock):
    """What the caller hears is the text to the letter."""
    async with speaking() as (caller, _):
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "".join(WORDS)


@pytest.mark.parametrize("cut_s", [n / 10 for n in range(1, 16)])
async def test_a_cut_at_any_moment_ends_the_synthesis(autojump_clock, cut_s):
    """Wherever the caller interrupts, nothing more of the utterance is paid for."""
    async with speaking() as (caller, vendor):
        caller.publish(UserStoppedSpeaking())
        await caller.at(cut_s)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(0.3)
        assert vendor.made_at_s <= cut_s
        for cut in caller.events(AgentSpeechCut):
            assert "".join(WORDS).startswith(cut.heard)
        await caller.quiet()
