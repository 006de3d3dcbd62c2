"""Cartesia's voice (``/tts/websocket``), by the vendor's SDK 4.2."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from bargein.nodes.services import LineArguments
from bargein.nodes.services.vendor_voice import Piece, TimedChunks, VendorVoice
from bargein.nodes.speech import TextSaid, VoiceStyle

from ._address import CARTESIA
from .errors import CARTESIA_ERRORS

__all__ = ["CartesiaVoice"]

SAMPLE_RATE_HZ = 24_000

EARLIER_S = 0.5
"""A word this long before its flush, in seconds, has times that count from the flush: the vendor's
documentation does not say where times start."""


class CartesiaVoice(VendorVoice):
    """Speaks with Cartesia's Sonic, and reports the time of each word."""

    def __init__(
        self,
        voice: str,
        *,
        api_key: str | None = None,
        model: str = "sonic-3",
        language: str | None = None,
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the voice; nothing connects yet.

        Args:
            voice: The voice's id at the vendor.
            api_key: The key; ``None`` reads CARTESIA_API_KEY.
            model: The vendor's name of the model.
            language: An ISO 639 code; ``None`` for the vendor's default.
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            ValueError: There is no key, or an address or a header that cannot be used.
        """
        address = CARTESIA.at(type(self).__name__, api_key, line).address("/tts/websocket")

        def codec(context: str, style: VoiceStyle) -> SonicCodec:
            return SonicCodec(
                context,
                model=model,
                voice=style.voice or voice,
                language=style.language or language,
                speed=style.speed,
                emotion=style.emotion,
            )

        super().__init__(
            address,
            codec,
            lambda message: message.get("context_id"),
            sample_rate_hz=SAMPLE_RATE_HZ,
            times="words",
            limits=line.get("limits"),
            dial=line.get("dial"),
        )


class SonicCodec:
    """The messages of one context of ``/tts/websocket``."""

    def __init__(
        self,
        context: str,
        *,
        model: str,
        voice: str,
        language: str | None,
        speed: float | None,
        emotion: str | None,
    ) -> None:
        config = {"speed": speed, "emotion": emotion}
        given = {name: value for name, value in config.items() if value is not None}
        self._context = context
        self._fields: dict[str, Any] = {
            "context_id": context,
            "model_id": model,
            "voice": {"mode": "id", "id": voice},
            "output_format": {
                "container": "raw",
                "encoding": "pcm_s16le",
                "sample_rate": SAMPLE_RATE_HZ,
            },
            "add_timestamps": True,
            "max_buffer_delay_ms": 0,  # else text without an end waits for three seconds
        }
        if language is not None:
            self._fields["language"] = language
        if given:
            self._fields["generation_config"] = given
        self._text = ""
        self._answered: object = None  # the id of the newest answer to a flush
        self._is_open = False
        self._chunks = TimedChunks(SAMPLE_RATE_HZ, back_s=EARLIER_S)

    def text(self, text: str) -> Sequence[str]:
        """Return nothing: text waits for its flush, as without a delay the vendor says each piece
        by itself.
        """
        self._text += text
        return ()

    def flush(self) -> Sequence[str]:
        """Return a request with all text since the last one, which is said at once."""
        return self._request(flush=True)

    def end(self) -> Sequence[str]:
        """Return a request without ``continue``, with the text that is left."""
        return self._request(more=False)

    def _request(self, *, more: bool = True, flush: bool = False) -> Sequence[str]:
        self._is_open = True
        text, self._text = self._text, ""
        request = {**self._fields, "transcript": text, "continue": more}
        return (json.dumps({**request, "flush": True} if flush else request),)

    def cancel(self) -> Sequence[str]:
        if not self._is_open:
            return ()
        return (json.dumps({"context_id": self._context, "cancel": True}),)

    def pieces(self, message: Mapping[str, Any]) -> Iterable[Piece]:
        match message["type"]:
            case "chunk":
                yield self._chunks.audio(message["data"])
            case "timestamps":
                yield self._chunks.words(message["word_timestamps"])
            case "flush_done" if self._is_new_answer(message.get("flush_id")):
                self._chunks.flushed()
                yield TextSaid()
            case "done":
                yield None
            case "error":
                self._is_open = False  # the error closes the context
                CARTESIA_ERRORS.check(
                    "rejected the text",
                    message.get("error_code"),
                    message.get("title"),
                    status=message.get("status_code"),
                    detail=message.get("message") or message.get("error"),
                )

    def _is_new_answer(self, number: object) -> bool:
        """Return whether a flush's answer is not the newest one again."""
        is_same = number is not None and number == self._answered
        self._answered = number
        return not is_same
