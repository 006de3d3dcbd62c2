"""Rime's voices (``/ws3``), by the vendor's page "Websockets JSON".

A line says one text at a time, so each utterance has a line of its own.  Text is said once it is
flushed (``segment=never``), and ``done`` reports that it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from bargein.bridge.validation.arguments import check_instance
from bargein.nodes.services import LineArguments, Vendor, VendorAddress
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
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the voice; nothing connects yet.

        Args:
            voice: The vendor's name of the speaker.  The address holds it, the language and the
                speed, so another one uses a socket of its own.
            api_key: The key; ``None`` reads RIME_API_KEY.
            model: The vendor's name of the model.
            language: An ISO 639 code, such as "en"; ``None`` for the vendor's default.
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            TypeError: `voice` is not a string.
            ValueError: There is no key, or an address or a header that cannot be used.
        """
        check_instance("RimeVoice(voice)", voice, str, required=True)
        at = RIME.at(type(self).__name__, api_key, line)

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
            limits=line.get("limits"),
            dial=line.get("dial"),
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
