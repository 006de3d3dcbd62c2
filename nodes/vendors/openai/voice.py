"""OpenAI's voice (``POST /audio/speech``), by the vendor's SDK 3.54 and public documentation.

Kokoro, Piper, speaches and other servers of one's own take the same request.

The API takes the whole text in one request and streams the audio. So each flush is a request, and
the intonation starts over with each clause. There are no word times.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Literal, Unpack

from bargein.bridge.validation.arguments import check_instance
from bargein.bridge.validation.numbers import check_range
from bargein.nodes.services import (
    Backoff,
    HttpResponse,
    ServiceArguments,
    without_secrets,
)
from bargein.nodes.speech import (
    SpeechExtraError,
    SpeechNotOpenError,
    SpeechPiece,
    VoiceContext,
    VoiceStyle,
)
from bargein.nodes.speech._clause_context import open_clauses

from ._address import OPENAI_HTTP
from .errors import OPENAI_ERRORS

__all__ = ["OpenAIVoice"]


SAMPLE_RATE_HZ = 24_000
"""Sample rate of ``pcm``: 16 bit, little-endian, mono (the vendor's guide to text to speech)."""

PATH = "/audio/speech"

TEXTS = ("application/json", "application/problem", "text/")
"""What the types of bodies begin with that are no audio: errors behind status 200."""


class OpenAIVoice:
    """Speaks with OpenAI's voices, clause by clause; open it before use."""

    times: Literal["words", "none"] = "none"
    sample_rate_hz = SAMPLE_RATE_HZ

    def __init__(
        self,
        voice: str = "marin",
        *,
        api_key: str | None = None,
        model: str = "gpt-4o-mini-tts",
        instructions: str | None = None,
        speed: float | None = None,
        base_url: str = OPENAI_HTTP.url,
        connect_s: float = 5.0,
        first_audio_s: float = 8.0,
        next_audio_s: float = 8.0,
        attempts: int = 3,
        random: Callable[[], float] = random.random,
        **service: Unpack[ServiceArguments],
    ) -> None:
        """Configure the voice; nothing connects yet.

        Args:
            voice: The vendor's name of a voice.
            api_key: The key; ``None`` reads OPENAI_API_KEY. A server of one's own needs none.
            model: The vendor's name of the model.
            instructions: How to speak, in words; not for ``tts-1``.
            speed: Factor on the usual speed, 0.25 to 4; ``None`` for 1.
            base_url: The URL that ``/audio/speech`` is appended to, before its query if it has one.
            connect_s: Limit for connecting, TLS included.
            first_audio_s: Limit from a clause's request to its first audio.
            next_audio_s: Limit between two pieces of audio.
            attempts: The largest number of requests for a clause that got no audio.
            random: Returns a number from 0 to 1, for the waits between attempts.
            service: What all services over HTTP take: see `ServiceArguments`.

        Raises:
            SpeechExtraError: httpx2 is not installed (extra ``openai``).
            TypeError: `voice` is not a string, `speed` is not a number, or `headers` or `query` is
                no mapping.
            ValueError: There is no key, `base_url` is not an HTTP URL, a header cannot be sent, or
                `speed` is out of bounds.
        """
        check_instance("OpenAIVoice(voice=)", voice, str, required=True)
        check_range("OpenAIVoice(speed=)", speed, 0.25, 4, optional=True)
        self._said: dict[str, Any] = {
            "model": model,
            "voice": voice,
            "instructions": instructions,
            "speed": speed,
        }
        self._limits_s = (first_audio_s, next_audio_s)
        self._service = OPENAI_HTTP.service(
            type(self).__name__,
            api_key,
            base_url,
            service,
            extra="openai",
            missing=SpeechExtraError,
            connect_s=connect_s,
            backoff=Backoff(attempts, random=random),
        )
        self._is_open = False

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep connections open while the block runs."""
        async with self._service.open():
            self._is_open = True
            try:
                yield
            finally:
                self._is_open = False

    @asynccontextmanager
    async def open_context(self, style: VoiceStyle) -> AsyncIterator[VoiceContext]:
        """Say one utterance while the block runs; see `StreamingTTS.open_context`.

        Raises:
            SpeechNotOpenError: The voice is not open.
        """
        if not self._is_open:
            raise SpeechNotOpenError(type(self).__name__)
        async with open_clauses(lambda text: self._pieces(text, style)) as context:
            yield context

    def _body(self, text: str, style: VoiceStyle) -> dict[str, Any]:
        instructions = self._said["instructions"]
        if style.emotion is not None:
            instructions = " ".join(filter(None, [instructions, f"Sound {style.emotion}."]))
        body = {
            **self._said,
            "input": text,
            "voice": style.voice or self._said["voice"],
            "speed": self._said["speed"] if style.speed is None else style.speed,
            "instructions": instructions,
            "response_format": "pcm",
            "stream_format": "audio",
        }
        return {name: value for name, value in body.items() if value is not None}

    async def _pieces(self, text: str, style: VoiceStyle) -> AsyncGenerator[SpeechPiece, None]:
        """Yield the audio of a clause, whole samples at a time."""
        _, next_s = self._limits_s
        request = partial(self._request, self._body(text, style))
        exchange, data = await self._service.retrying(request)
        try:
            more: bytes | None = b""
            while more is not None:
                data += more
                if len(data) > 1:
                    yield SpeechPiece(data[: len(data) & ~1])
                    data = data[len(data) & ~1 :]
                with self._service.within(next_s, "audio"):
                    more = await exchange.read()
        finally:
            await exchange.aclose()

    async def _request(self, body: dict[str, Any]) -> tuple[HttpResponse, bytes]:
        """Ask for audio; return the response and its first samples, none if it has no audio."""
        first_s, _ = self._limits_s
        exchange = HttpResponse(OPENAI_ERRORS.vendor)
        try:
            with self._service.within(first_s, "audio"):
                await self._service.send(PATH, exchange=exchange, json=body)
                if not exchange.is_success:
                    raise await self._service.refusal(exchange, "rejected the text")
                if exchange.content_type.startswith(TEXTS):
                    raise await self._service.refusal(exchange, "answered with a text, no audio")
                data = b""
                while len(data) < 2 and (chunk := await exchange.read()) is not None:
                    data += chunk
        except BaseException:
            await exchange.aclose()
            raise
        return exchange, data

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {without_secrets(self._service.base_url)}>"
