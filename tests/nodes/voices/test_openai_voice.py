"""OpenAI's voice against an endpoint that streams audio over HTTP, in virtual time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
import trio

from bargein import App, Call
from bargein.events import AgentResponse, AgentSpeechCut, UserStartedSpeaking, UserStoppedSpeaking
from bargein.speech import SpeechNotOpenError, SpeechPiece, StreamingSpeech, TextSaid, VoiceStyle
from bargein.testing import open_call
from bargein.vendors import VendorError
from bargein.voices import OpenAIVoice

CHAR_S = 0.05
BYTES_PER_S = 48_000


class Audio(httpx2.AsyncByteStream):
    """The audio of a text, in odd pieces, ten times as fast as it is heard."""

    def __init__(self, endpoint: Endpoint, text: str) -> None:
        self._endpoint = endpoint
        self._text = text

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            for number, _ in enumerate(self._text):
                await trio.sleep(CHAR_S / 10)
                if self._endpoint.breaks_after == number:
                    self._endpoint.breaks_after = None
                    raise httpx2.ReadError("gone")
                if self._endpoint.stalls_after == number:
                    await trio.sleep_forever()
                size = round(CHAR_S * BYTES_PER_S)
                yield bytes(size + (1 if number % 2 == 0 else -1))
            if len(self._text) % 2:
                yield b""
        finally:
            self._endpoint.open -= 1

    async def aclose(self) -> None:
        """Count as closed already."""


class Endpoint(httpx2.AsyncBaseTransport):
    """Streams each character in 0.05 s of audio."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Any, dict[str, Any]]] = []
        self.refusals: list[httpx2.Response] = []
        self.breaks_after: int | None = None
        self.stalls_after: int | None = None
        self.open = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        await trio.sleep(0.1)
        body = json.loads(await request.aread())
        self.requests.append((str(request.url), request.headers, body))
        if self.refusals:
            return self.refusals.pop(0)
        self.open += 1
        return httpx2.Response(200, stream=Audio(self, body["input"]))


@pytest.fixture
def endpoint() -> Endpoint:
    """Return an endpoint that works."""
    return Endpoint()


def voice_of(endpoint: Endpoint, **options: Any) -> OpenAIVoice:
    """Return the voice in front of it."""
    return OpenAIVoice(
        "coral",
        api_key="s3cret",
        url="http://fake/v1",
        transport=endpoint,
        random=lambda: 0.0,
        **options,
    )


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


async def test_each_flush_is_a_request_whose_audio_streams(autojump_clock, endpoint):
    """Text up to a flush is one request; its audio comes in whole samples, in order."""
    voice = voice_of(endpoint, instructions="Speak calmly.")
    async with voice.open(), voice.open_context(VoiceStyle()) as context:
        await context.send("One large ")
        await context.send("latte. ")
        await context.flush()
        await context.send("Anything else?")
        await context.flush()
        await context.end()
        audio_s, flushes = await receive_all(context)
    assert audio_s == pytest.approx(30 * CHAR_S, abs=0.001)
    assert flushes == 2
    url, headers, body = endpoint.requests[0]
    assert url == "http://fake/v1/audio/speech"
    assert headers["authorization"] == "Bearer s3cret"
    assert body == {
        "model": "gpt-4o-mini-tts",
        "voice": "coral",
        "input": "One large latte.",
        "instructions": "Speak calmly.",
        "response_format": "pcm",
        "stream_format": "audio",
    }
    assert endpoint.requests[1][2]["input"] == "Anything else?"
    assert "s3cret" not in repr(voice)


async def test_the_style_goes_with_each_request(autojump_clock, endpoint):
    """Voice, speed and emotion of a style take the place of what the voice was made with."""
    voice = voice_of(endpoint, speed=0.9)
    style = VoiceStyle(voice="cedar", speed=1.2, emotion="cheerful")
    async with voice.open(), voice.open_context(style) as context:
        await context.send("Hi.")
        await context.end()
        await receive_all(context)
    body = endpoint.requests[0][2]
    assert (body["voice"], body["speed"]) == ("cedar", 1.2)
    assert body["instructions"] == "Sound cheerful."


@pytest.mark.parametrize("left_s", [0.05, 0.1, 0.103, 0.11, 0.2, 0.5])
async def test_leaving_early_ends_the_request(autojump_clock, endpoint, left_s):
    """Wherever an utterance is left, its connection is closed, and the next one works."""
    voice = voice_of(endpoint)
    async with voice.open():
        async with voice.open_context(VoiceStyle()) as context:
            await context.send("One large latte with oat milk. " * 5)
            await context.flush()
            with trio.move_on_after(left_s):
                await receive_all(context)
        assert endpoint.open == 0
        async with voice.open_context(VoiceStyle()) as context:
            await context.send("Two.")
            await context.end()
            assert (await receive_all(context))[0] == pytest.approx(4 * CHAR_S, abs=0.001)


async def test_what_nothing_came_of_is_asked_for_again(autojump_clock, endpoint):
    """A refusal that may pass, and a connection that breaks at once, cost time alone."""
    endpoint.refusals = [httpx2.Response(503, content=b"busy")]
    endpoint.breaks_after = 0
    voice = voice_of(endpoint)
    async with voice.open(), voice.open_context(VoiceStyle()) as context:
        await context.send("Hello.")
        await context.end()
        audio_s, _ = await receive_all(context)
    assert audio_s == pytest.approx(6 * CHAR_S, abs=0.001)
    assert len(endpoint.requests) == 3


async def test_a_connection_that_breaks_in_mid_clause_is_an_error(autojump_clock, endpoint):
    """What was half said is not said again."""
    endpoint.breaks_after = 2
    voice = voice_of(endpoint)
    async with voice.open(), voice.open_context(VoiceStyle()) as context:
        await context.send("Hello.")
        await context.end()
        assert isinstance(await context.receive(), SpeechPiece)
        with pytest.raises(VendorError, match="ReadError"):
            await receive_all(context)
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("stalls_after", [0, 2])
async def test_a_voice_that_stalls_is_an_error(autojump_clock, endpoint, stalls_after):
    """An endpoint that sends nothing is given up, before its first audio and amid it."""
    endpoint.stalls_after = stalls_after
    voice = voice_of(endpoint, attempts=1, first_audio_s=2.0, next_audio_s=1.0)
    async with voice.open(), voice.open_context(VoiceStyle()) as context:
        await context.send("Hello.")
        await context.end()
        with pytest.raises(VendorError, match="no audio for"):
            await receive_all(context)
    assert endpoint.open == 0


async def test_a_wrong_key_fails_at_once(autojump_clock, endpoint):
    """What the vendor refuses for good is not asked twice, and the key is in no text."""
    endpoint.refusals = [httpx2.Response(401, content=b'{"error": {"code": "invalid_api_key"}}')]
    voice = voice_of(endpoint)
    async with voice.open(), voice.open_context(VoiceStyle()) as context:
        await context.send("Hello.")
        await context.end()
        with pytest.raises(VendorError, match="invalid_api_key") as caught:
            await receive_all(context)
    assert caught.value.status == 401
    assert "s3cret" not in str(caught.value)
    assert len(endpoint.requests) == 1


async def test_a_voice_that_is_not_open_says_so(autojump_clock, endpoint):
    """Opening a context of a closed voice raises an error that says what to do."""
    with pytest.raises(SpeechNotOpenError, match="async with"):
        async with voice_of(endpoint).open_context(VoiceStyle()):
            pass


def test_settings_that_are_none_are_refused(monkeypatch):
    """A missing key and a WebSocket's address are errors where the voice is made."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        OpenAIVoice()
    with pytest.raises(ValueError, match="https://"):
        OpenAIVoice(api_key="k", url="wss://api.openai.com")


# --- in a call ------------------------------------------------------------------------------------

WORDS = ["Sure thing, ", "one latte ", "for you. ", "Anything else today?"]


@asynccontextmanager
async def speaking(voice: OpenAIVoice) -> AsyncIterator[Any]:
    """Open a call whose agent says words, one after the other."""

    async def generate(message: Any) -> AsyncIterator[AgentResponse]:
        for word in WORDS:
            await trio.sleep(0.05)
            yield AgentResponse(content=word)

    async def answer(call: Call) -> None:
        on_stop = call.bridge(name="agent").on(UserStoppedSpeaking)
        on_stop.interrupt_on(UserStartedSpeaking).stream(generate).broadcast()

    app = App(answer, speech=StreamingSpeech(voice=voice, fillers=None))
    async with voice.open(), open_call(app, own_speech=True) as caller:
        yield caller


async def test_a_call_hears_every_word(autojump_clock, endpoint):
    """What the caller hears is the text to the letter."""
    async with speaking(voice_of(endpoint)) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.quiet()
        assert caller.heard == "".join(WORDS)


@pytest.mark.parametrize("cut_s", [n / 10 for n in range(1, 16)])
async def test_a_cut_at_any_moment_frees_the_connection(autojump_clock, endpoint, cut_s):
    """Wherever the caller interrupts, nothing of the utterance is still being paid for."""
    async with speaking(voice_of(endpoint)) as caller:
        caller.publish(UserStoppedSpeaking())
        await caller.at(cut_s)
        caller.publish(UserStartedSpeaking())
        await trio.sleep(0.3)
        assert endpoint.open == 0
        for cut in caller.events(AgentSpeechCut):
            assert "".join(WORDS).startswith(cut.heard)
        await caller.quiet()
