"""Whole utterances to text over HTTP (``POST /audio/transcriptions``), by OpenAI's SDK 3.54.

OpenAI, Azure and Groq have this endpoint, and so have servers of one's own: speaches, other servers
of faster-whisper, and vLLM.  They differ in what comes back: ``verbose_json`` has the recogniser's
own numbers and the language, and not every model can answer so.
"""

from __future__ import annotations

import math
import random
import struct
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Unpack

from pydantic_core import from_json

from bargein.bridge.validation.arguments import check_instance
from bargein.bridge.validation.numbers import check_range
from bargein.nodes.services import (
    Backoff,
    ServiceArguments,
    VendorError,
    checked_options,
    without_secrets,
)
from bargein.nodes.speech import SpeechExtraError, Transcript

from ._address import OPENAI_HTTP
from ._whisper_languages import language_code
from .errors import OPENAI_ERRORS

__all__ = ["TranscriptionService"]

PATH = "/audio/transcriptions"

SAMPLE_RATE_HZ = 16_000

DETAILED, PLAIN = "verbose_json", "json"

CANNOT = {400, 422}
"""Statuses by which servers refuse a format that a model cannot answer in."""


class TranscriptionService:
    """A ``Recogniser`` that sends each utterance to an endpoint; shared by all calls.

    Pass it as ``ear=`` to ``LocalSpeech``.  The pool of connections opens at the first request and
    closes when trio's run ends; with ``async with service.open()`` it closes with the block.
    """

    def __init__(
        self,
        model: str = "whisper-1",
        *,
        api_key: str | None = None,
        language: str | None = None,
        hint: str = "",
        options: Mapping[str, Any] | None = None,
        base_url: str = OPENAI_HTTP.url,
        limit_s: float = 8.0,
        connect_s: float = 5.0,
        attempts: int = 3,
        random: Callable[[], float] = random.random,
        **service: Unpack[ServiceArguments],
    ) -> None:
        """Configure the endpoint; nothing connects yet.

        Args:
            model: The server's name of the model.
            api_key: Sent as a bearer token; ``None`` reads OPENAI_API_KEY.  A server of one's own
                often needs none.
            language: The callers' language, as an ISO 639-1 code; ``None`` lets the model detect
                it.
            hint: Text that might precede the utterance, with words and names that callers are
                likely to use; empty for none.
            options: Further fields of each request (``{"temperature": 0}``), which override ours;
                ``None`` as a value removes a field.
            base_url: The URL that ``/audio/transcriptions`` is appended to, before its query if it
                has one.
            limit_s: How long an attempt may take, in seconds, above 0.
            connect_s: Limit for connecting, TLS included, in seconds, above 0.
            attempts: The largest number of attempts for an utterance, from 1.
            random: Returns a number from 0 to 1, for the waits between attempts.
            service: What all services over HTTP take: see `ServiceArguments`.

        Raises:
            SpeechExtraError: httpx2 is not installed (extra ``openai``).
            TypeError: A text is not a string, or `options`, `headers` or `query` is no mapping.
            ValueError: No model is named, the endpoint is OpenAI's and there is no key, or a
                request cannot carry a key, URL, option or header.
        """
        check_instance("TranscriptionService(model=)", model, str, required=True)
        check_instance("TranscriptionService(language=)", language, str)
        check_instance("TranscriptionService(hint=)", hint, str, required=True)
        check_range("TranscriptionService(limit_s=)", limit_s, 0.001, math.inf)
        if not model:
            raise ValueError("TranscriptionService(model=) names no model")
        self.model = model
        self._language = language
        self._limit_s = limit_s
        self._fields = {"model": model, "language": language, "prompt": hint or None}
        self._options = checked_options(options)
        self._is_detailed = "transcribe" not in model  # OpenAI's models of that name answer plainly
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

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the connection pool open for the block; blocks may overlap."""
        async with self._service.open():
            yield

    async def transcribe(self, pcm: bytes) -> Transcript:
        """Transcribe one utterance; see `Recogniser.transcribe`.

        An utterance without a sample is not sent.

        Args:
            pcm: The utterance, PCM16 little-endian mono, 16 kHz.

        Raises:
            VendorError: The server refused, failed, or answered with something else.
        """
        if len(pcm) < 2:
            return Transcript("")
        if self._is_detailed:
            try:
                return self._read(await self._ask(pcm, DETAILED))
            except VendorError as error:
                if error.status not in CANNOT:
                    raise
            plain = self._read(await self._ask(pcm, PLAIN))
            self._is_detailed = False  # it was the format: so the next utterance asks once
            return plain
        return self._read(await self._ask(pcm, PLAIN))

    async def _ask(self, pcm: bytes, form: str) -> bytes:
        fields = {**self._fields, "response_format": form, **self._options}
        return await self._service.fetch(
            PATH,
            problem="rejected the utterance",
            limit_s=self._limit_s,
            data={name: _shown(value) for name, value in fields.items() if value is not None},
            files={"file": ("utterance.wav", wav(pcm), "audio/wav")},
        )

    def _read(self, body: bytes) -> Transcript:
        """Return what the server heard.

        Raises:
            VendorError: It is no transcript.
        """
        try:
            told = from_json(body)
        except ValueError:
            told = None
        if not isinstance(told, dict) or not isinstance(told.get("text"), str):
            raise OPENAI_ERRORS.refusal("answered with no transcript", 200, {}, body)
        found = told.get("segments")
        segments = (
            [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
        )
        language = told.get("language")
        return Transcript(
            told["text"].strip(),
            no_speech_prob=min(_numbers(segments, "no_speech_prob"), default=0.0),
            avg_logprob=_mean_logprob(segments),
            language=language_code(language if isinstance(language, str) else "")
            or self._language
            or "",
        )

    def __repr__(self) -> str:
        shown = without_secrets(self._service.base_url)
        return f"{type(self).__name__}({self.model!r}, base_url={shown!r})"


def wav(pcm: bytes) -> bytes:
    """Return PCM16 mono of 16 kHz with the header of a WAV file (Microsoft and IBM, 1991)."""
    pcm = pcm[: len(pcm) & ~1]
    form = struct.pack("<HHIIHH", 1, 1, SAMPLE_RATE_HZ, 2 * SAMPLE_RATE_HZ, 2, 16)
    head = b"RIFF" + struct.pack("<I", 36 + len(pcm)) + b"WAVEfmt " + struct.pack("<I", 16) + form
    return head + b"data" + struct.pack("<I", len(pcm)) + pcm


def _shown(value: object) -> Any:
    """Return a field as forms send it; a list is sent as several fields."""
    if isinstance(value, list | tuple):
        return [_shown(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else str(value)


def _numbers(segments: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    values = (segment.get(name) for segment in segments)
    return [
        float(value)
        for value in values
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    ]


def _mean_logprob(segments: Sequence[Mapping[str, Any]]) -> float:
    """Return the mean of the segments, each as heavy as its text is long; 0 if none has one."""
    heavy = [
        (logprob, len(str(segment.get("text") or " ")))
        for segment in segments
        for logprob in _numbers([segment], "avg_logprob")
    ]
    weight = sum(letters for _, letters in heavy)
    return sum(logprob * letters for logprob, letters in heavy) / weight if weight else 0.0
