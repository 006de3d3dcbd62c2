"""Rime's voices (``/ws3``), by the vendor's page "Websockets JSON".

A line says one text at a time, so each utterance has a line of its own.  Text is said once it is
flushed (``segment=never``), and ``done`` reports that it was.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

import trio

from bargein.bridge.validation.arguments import check_instance
from bargein.nodes.services import (
    Query,
    SessionLimits,
    Vendor,
    VendorAddress,
)
from bargein.nodes.services.vendor_voice import TimedChunks, VendorVoice, VoiceCodec
from bargein.nodes.speech import SpeechPiece, TextSaid, VoiceStyle

from .errors import RIME_ERRORS

__all__ = ["RimeVoice"]

RIME = Vendor(errors=RIME_ERRORS, url="wss://users-ws.rime.ai", variables="RIME")

SAMPLE_RATE_HZ = 24_000

_LANGUAGES = {"de": "ger", "en": "eng", "es": "spa", "fr": "fra", "hi": "hin"}
"""The vendor's codes where they are not those of ISO 639-1."""


class RimeVoice(VendorVoice):
    """Speaks with Rime's models, and reports the time of each word."""

    def __init__(
        self,
        voice: str,
        *,
        api_key: str | None = None,
        model: str = "coda",
        language: str | None = None,
        url: str = RIME.url,
        headers: Mapping[str, str] | None = None,
        query: Query | None = None,
        limits: SessionLimits | None = None,
        dial: Callable[[], Awaitable[trio.abc.Stream]] | None = None,
    ) -> None:
        """Configure the voice; nothing connects yet.

        Args:
            voice: The vendor's name of the speaker.  The address holds it, the language and the
                speed, so another one uses a socket of its own.
            api_key: The key; ``None`` reads RIME_API_KEY.
            model: The vendor's name of the model.
            language: An ISO 639 code, such as "en"; ``None`` for the vendor's default.
            url: The URL that the path is appended to, before its query if it has one.
            headers: Further headers of the handshake, which override ours, the key included.
            query: Further parameters of the address, which override others; ``None`` removes one.
            limits: The limits of a session; ``None`` for the defaults.
            dial: Opens the stream of a connection; ``None`` connects to the address.

        Raises:
            TypeError: `voice` is not a string.
            ValueError: `url` is the vendor's and there is no key, it is no WebSocket URL, or a
                header cannot be sent.
        """
        check_instance("RimeVoice(voice)", voice, str, required=True)
        at = RIME.at(url, api_key, headers, query)

        def address_of(style: VoiceStyle) -> VendorAddress:
            spoken = style.language or language
            asked = {
                "speaker": style.voice or voice,
                "modelId": model,
                "audioFormat": "pcm",
                "samplingRate": SAMPLE_RATE_HZ,
                "segment": "never",
                "lang": spoken and _LANGUAGES.get(spoken[:2].lower(), spoken),
                "timeScaleFactor": style.speed and 1 / style.speed,
            }
            return at.address("/ws3", asked)

        super().__init__(
            address_of,
            lambda context, style: RimeCodec(),
            None,
            sample_rate_hz=SAMPLE_RATE_HZ,
            times="words",
            limits=limits,
            dial=dial,
        )


class RimeCodec(VoiceCodec):
    """The messages of ``/ws3``."""

    def __init__(self) -> None:
        self._is_open = False
        self._chunks = TimedChunks(SAMPLE_RATE_HZ)

    def text(self, text: str) -> Sequence[str]:
        """Return the text, which waits for its flush."""
        self._is_open = True
        return (json.dumps({"text": text}),)

    def flush(self) -> Sequence[str]:
        return ('{"operation": "flush"}',)

    def cancel(self) -> Sequence[str]:
        """Return what drops the text that is not said yet; closing the line stops the audio."""
        return ('{"operation": "clear"}',) if self._is_open else ()

    def pieces(self, message: Mapping[str, Any]) -> Iterable[SpeechPiece | TextSaid | None]:
        match message["type"]:
            case "chunk":
                yield self._chunks.audio(message["data"])
            case "timestamps":
                yield self._chunks.words(message["word_timestamps"])
            case "done":
                self._chunks.flushed()
                yield TextSaid()
            case "error":
                RIME_ERRORS.check(
                    "rejected the text", message.get("code"), detail=message.get("message")
                )
