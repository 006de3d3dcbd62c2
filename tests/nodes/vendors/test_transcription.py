"""Whole utterances sent to an endpoint that transcribes them, in virtual time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing

from bargein import Call
from bargein.ears import TranscriptionService
from bargein.events import UserAudio, VoiceWords
from bargein.fakes import FakeTranscription, Fault
from bargein.speech import Hearing, Recogniser, Transcript
from bargein.testing import open_call
from bargein.vendors import VendorError

SOUND, SILENCE = b"\x01\x10" * 8_000, bytes(16_000)


class Vendor(FakeTranscription):
    """The endpoint, which keeps the heads of requests and may answer with a body of its own."""

    def __init__(self, *args: Any, body: Any = None, **options: Any) -> None:
        super().__init__(*args, **options)
        self.heads: list[str] = []
        self._body = body

    def refusal(self, head: str) -> tuple[int, Mapping[str, Any]] | None:
        self.heads.append(head)
        return super().refusal(head)

    def events(self, words: Any) -> Any:
        if self._body is None:
            return super().events(words)
        body = self._body if isinstance(self._body, bytes) else json.dumps(self._body).encode()
        return ((body, "last"),)


@asynccontextmanager
async def open_service(
    vendor: Vendor | None = None, model: str = "whisper-large-v3", **options: Any
) -> AsyncIterator[tuple[TranscriptionService, Vendor]]:
    """Open a service in front of its fake."""
    async with (vendor or Vendor()).open() as endpoint:
        given = {"base_url": "http://fake/v1", "api_key": "s3cret", "random": lambda: 0.0}
        service = TranscriptionService(
            model, **{**given, "transport": endpoint.transport(), **options}
        )
        async with service.open():
            yield service, endpoint


async def test_an_utterance_is_sent_as_a_file_with_its_fields(autojump_clock):
    """The request has the sound as a WAV file of 16 kHz, and only fields that are set."""
    options = {"language": "de", "hint": "Milchkaffee", "options": {"temperature": 0}}
    async with open_service(**options) as (service, vendor):
        assert isinstance(service, Recogniser)
        heard = await service.transcribe(SOUND)
        (asked,) = vendor.requests
    assert heard.text == "a large latte please"
    file = asked.pop("file")
    assert asked == {
        "model": "whisper-large-v3",
        "language": "de",
        "prompt": "Milchkaffee",
        "response_format": "verbose_json",
        "temperature": "0",
    }
    assert file[:4] + file[8:16] == b"RIFFWAVEfmt "
    assert int.from_bytes(file[4:8], "little") == len(file) - 8
    assert int.from_bytes(file[24:28], "little") == 16_000
    assert file[44:] == SOUND
    assert "\r\nauthorization: bearer s3cret\r\n" in vendor.heads[0].lower()
    assert "s3cret" not in repr(service)


async def test_the_recognisers_own_numbers_and_its_language_are_kept(autojump_clock):
    """What tells a guess from words comes with the text, and a language becomes its code."""
    segments = [
        {"text": " Two", "avg_logprob": -0.1, "no_speech_prob": 0.9},
        {"text": " lattes, please, now", "avg_logprob": -0.5, "no_speech_prob": 0.02},
        {"text": None, "avg_logprob": "none"},
        7,
    ]
    body = {"text": " Two lattes, please, now ", "language": "German", "segments": segments}
    async with open_service(Vendor(body=body)) as (service, _):
        heard = await service.transcribe(SOUND)
    assert heard.text == "Two lattes, please, now"
    assert heard.language == "de"
    assert heard.no_speech_prob == 0.02
    assert heard.avg_logprob == pytest.approx((-0.1 * 4 - 0.5 * 20) / 24)


@pytest.mark.parametrize(
    ("told", "tag"),
    [
        ("english", "en"),
        ("en", "en"),
        ("pt_BR", "pt-BR"),
        ("Haitian Creole", "ht"),
        ("klingon", ""),
    ],
)
async def test_a_language_is_a_tag_or_unknown(autojump_clock, told, tag):
    """Names and codes become tags; what is neither says nothing."""
    async with open_service(Vendor(body={"text": "hi", "language": told})) as (service, _):
        assert (await service.transcribe(SOUND)).language == tag


async def test_a_model_that_answers_plainly_is_asked_plainly_from_then_on(autojump_clock):
    """A refused format costs one request, once; then the text comes alone."""
    async with open_service(Vendor(formats=["json"])) as (service, vendor):
        for _ in range(2):
            assert await service.transcribe(SOUND) == Transcript("a large latte please")
        forms = [asked["response_format"] for asked in vendor.requests]
    assert forms == ["verbose_json", "json", "json"]


async def test_openais_plain_models_are_asked_plainly_at_once(autojump_clock):
    """The models of OpenAI that answer plainly have a name that says so."""
    async with open_service(Vendor(formats=["json"]), "gpt-4o-mini-transcribe") as opened:
        await opened[0].transcribe(SOUND)
        assert len(opened[1].requests) == 1


async def test_a_server_of_ones_own_gets_no_key(autojump_clock, monkeypatch):
    """Without a key no header is sent, and an environment without one is no error."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    vendor = Vendor(needs_key=False)
    async with open_service(vendor, api_key=None, base_url="http://fake/v1?tenant=7") as opened:
        assert (await opened[0].transcribe(SOUND)).text
    assert "authorization" not in vendor.heads[0].lower()
    assert vendor.heads[0].startswith("POST /v1/audio/transcriptions?tenant=7 ")


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "the model is loading", "code": "loading"}}, "the model is loading"),
        ({"object": "error", "message": "too long"}, "too long"),
        ({"text": None}, "no transcript"),
        (b"a large latte please", "a large latte please"),
        (b"\xff\xfe", "no transcript"),
        ([], "no transcript"),
    ],
)
async def test_what_is_no_transcript_is_an_error_in_the_servers_words(autojump_clock, body, words):
    """An answer that is none, behind status 200, is never taken for silence."""
    async with open_service(Vendor(body=body)) as (service, _):
        with pytest.raises(VendorError, match=words) as caught:
            await service.transcribe(SOUND)
    assert "no transcript" in caught.value.problem


async def test_nothing_is_not_sent_and_silence_has_no_words(autojump_clock):
    """No sample costs no request; a server that hears nothing returns no words."""
    async with open_service() as (service, vendor):
        assert await service.transcribe(b"") == Transcript("")
        assert (await service.transcribe(SILENCE)).text == ""
        assert len(vendor.requests) == 1


@pytest.mark.parametrize("fault", [Fault("refuse", "connect", 2, 503), Fault("drop", "middle", 2)])
async def test_what_passes_is_asked_again(autojump_clock, fault):
    """Two failures in a row cost time alone."""
    async with open_service(Vendor(fault=fault)) as (service, _):
        assert (await service.transcribe(SOUND)).text == "a large latte please"


async def test_a_server_that_says_nothing_is_given_up(autojump_clock):
    """Each attempt has its limit, and the error says how long it was."""
    vendor = Vendor(fault=Fault("stall", "first", None))
    async with open_service(vendor, limit_s=2.0, attempts=2) as (service, _):
        with pytest.raises(VendorError, match="no answer for 2 s"):
            await service.transcribe(SOUND)


async def test_a_wrong_key_fails_at_once(autojump_clock):
    """What is refused for good is asked once, and no text has the key."""

    class Locked(Vendor):
        def refusal(self, head: str) -> tuple[int, Mapping[str, Any]] | None:
            self.heads.append(head)
            error = {"message": "Incorrect API key", "type": "invalid_request_error"}
            return 401, {"error": {**error, "code": "invalid_api_key"}}

    async with open_service(Locked()) as (service, vendor):
        with pytest.raises(VendorError, match="Incorrect API key") as caught:
            await service.transcribe(SOUND)
    assert caught.value.status == 401
    assert not caught.value.retryable
    assert len(vendor.heads) == 1
    assert "s3cret" not in str(caught.value)


def test_settings_that_are_none_are_refused(monkeypatch):
    """Mistakes show where the service is made."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        TranscriptionService()
    with pytest.raises(ValueError, match="base_url="):
        TranscriptionService(base_url="localhost:8000")
    with pytest.raises(ValueError, match="model"):
        TranscriptionService("", base_url="http://localhost:8000/v1")
    with pytest.raises(ValueError, match="limit_s"):
        TranscriptionService(base_url="http://localhost:8000/v1", limit_s=0)


class LoudIsSpeech:
    """A detector: whatever does not begin with a zero is speech."""

    frame_samples = 512

    def probability(self, frame: bytes) -> float:
        return 0.9 if frame[0] else 0.0


class AlwaysDone:
    """An end-of-turn model that is sure."""

    async def probability(self, pcm: bytes) -> float:
        return 0.9


async def test_a_caller_is_heard_by_a_server_of_ones_own(autojump_clock):
    """In a call, what the server hears is what the ear reports of the voice."""
    async with open_service(Vendor(needs_key=False), api_key="") as (service, vendor):

        async def answer(call: Call) -> None:
            ears = call.bridge(name="ears", is_agent=False)
            Hearing(ears, service, vad=LoudIsSpeech(), end_of_turn=AlwaysDone())

        async with open_call(answer) as caller:
            await trio.testing.wait_all_tasks_blocked()
            for loud in [0] * 4 + [1] * 30 + [0] * 40:
                caller.publish(UserAudio(pcm=(SOUND if loud else SILENCE)[:1024]))
                await trio.sleep(0.032)
            await caller.quiet()
            found = [r.event for r in caller.received]
    words = [e.content for e in found if isinstance(e, VoiceWords) and not e.tentative]
    assert words[-1] == "a large latte please"
    assert all(asked["file"][44:].count(SOUND[:2]) > 0 for asked in vendor.requests)
