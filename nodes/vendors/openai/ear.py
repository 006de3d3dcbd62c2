"""OpenAI's speech recogniser: a transcription session of the Realtime API.

By the types of the vendor's SDK 3.54 and its public guide to realtime transcription.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Unpack

from bargein.bridge.validation.arguments import check_strings
from bargein.bridge.websocket import Data
from bargein.nodes.services import LineArguments
from bargein.nodes.services.vendor_ear import SAMPLE_RATE_HZ, PlainEarCodec, VendorEar
from bargein.nodes.speech import EarFact, EvenResampler
from bargein.routes.logs import get_logger

from ._address import OPENAI
from ._turns import OpenAITurns, turn_detection
from .errors import OPENAI_ERRORS

__all__ = ["OpenAIEar"]

log = get_logger()

VENDOR_RATE_HZ = 24_000
"""The only PCM sample rate that the vendor accepts."""

WIRE_BYTES = 2.1
"""Bytes on the wire for a byte of audio: 24 kHz for 16, base64, and some JSON."""

CONFIGURE = "configure"
"""The id of our message that configures a session; an error that names it ends the session."""

COMMIT = '{"type": "input_audio_buffer.commit"}'


class OpenAIEar(VendorEar):
    """Hears with OpenAI's transcription models; the vendor's detection ends a turn.

    It reports the words of a stretch of speech, and their language, once the stretch is over.
    Models that stream words during speech detect no turns: pass ``turns="none"``, and give
    `Speech` a ``vad=`` and endpointing of ours.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        model: str = "gpt-transcribe",
        language: str | None = None,
        keywords: Sequence[str] = (),
        prompt: str | None = None,
        turns: Literal["semantic", "silence", "none"] = "semantic",
        eagerness: Literal["low", "medium", "high"] | None = None,
        silence_s: float | None = None,
        threshold: float | None = None,
        noise_reduction: Literal["near_field", "far_field"] | None = None,
        tells_confidence: bool = False,
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the ear; nothing connects yet.

        Args:
            api_key: The key; ``None`` reads OPENAI_API_KEY.
            model: The vendor's name of the model; ``gpt-live-transcribe`` requires
                ``turns="none"``.
            language: An ISO 639-1 code; ``None`` lets the model detect it.
            keywords: Words that callers are likely to use, for models that take them.
            prompt: Words or a sentence that guide the model, for models that take one.
            turns: What ends a turn: the vendor's model, a silence, or nothing at the vendor.
            eagerness: For ``"semantic"``: the longest pause is 8, 4 or 2 s; ``None`` for the
                vendor's default.
            silence_s: For ``"silence"``: how long, in seconds; ``None`` for the vendor's default,
                0.5 s.
            threshold: For ``"silence"``: how loud speech has to be, 0 to 1; ``None`` for 0.5.
            noise_reduction: Which kind of microphone the vendor filters for; ``None`` filters
                nothing.
            tells_confidence: Whether to ask the model for its confidence; not every model reports
                it.
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            TypeError: `keywords` is not a list of strings, or `headers` or `query` is no mapping.
            ValueError: There is no key, an address or a header that cannot be used, or a setting
                that does not fit `turns`.
            SpeechExtraError: soxr is not installed (extra ``openai``).
        """
        check_strings("OpenAIEar(keywords=)", keywords)
        EvenResampler(SAMPLE_RATE_HZ, VENDOR_RATE_HZ)  # raises if soxr is missing
        recogniser = {
            "model": model,
            "language": language,
            "prompt": prompt,
            "keywords": [*keywords] or None,
        }
        heard: dict[str, Any] = {
            "format": {"type": "audio/pcm", "rate": VENDOR_RATE_HZ},
            "transcription": {name: value for name, value in recogniser.items() if value},
            "turn_detection": turn_detection(
                turns, silence_s=silence_s, threshold=threshold, eagerness=eagerness
            ),
        }
        if noise_reduction is not None:
            heard["noise_reduction"] = {"type": noise_reduction}
        session: dict[str, Any] = {"type": "transcription", "audio": {"input": heard}}
        if tells_confidence:
            session["include"] = ["item.input_audio_transcription.logprobs"]
        update = {"type": "session.update", "event_id": CONFIGURE, "session": session}
        address = OPENAI.at(type(self).__name__, api_key, line).address(
            "/realtime", {"intent": "transcription"}, greeting=(json.dumps(update),)
        )
        self.ends_turns = turns != "none"
        super().__init__(
            address,
            TranscriptionCodec,
            limits=line.get("limits"),
            wire_bytes=WIRE_BYTES,
            dial=line.get("dial"),
        )


class TranscriptionCodec(PlainEarCodec):
    """The messages of a transcription session."""

    piece_s = 0.06

    def __init__(self) -> None:
        self._turns = OpenAITurns()
        self._resampler = EvenResampler(SAMPLE_RATE_HZ, VENDOR_RATE_HZ)

    def audio(self, pcm: bytes) -> Data:
        """Return the audio at the vendor's rate, as base64 in JSON."""
        return append(self._resampler.push(pcm))

    def end_turn(self) -> Data:
        return COMMIT

    def restart(self) -> None:
        self._turns.restart()

    def facts(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        if message["type"] == "error":
            raise_if_fatal(message["error"])
        yield from self._turns.facts(message)


def append(pcm: bytes) -> str:
    """Return the message that carries audio.

    Args:
        pcm: PCM16 little-endian mono at the vendor's rate.
    """
    audio = base64.b64encode(pcm).decode()
    return json.dumps({"type": "input_audio_buffer.append", "audio": audio})


def raise_if_fatal(error: Mapping[str, Any]) -> None:
    """Raise an error unless the session goes on, as after most of them.

    Args:
        error: As in a message of type ``error``.

    Raises:
        VendorError: The session was refused or is over; if `retryable`, another one may work.
    """
    codes, detail = (error.get("code"), error.get("type")), error.get("message")
    if error.get("event_id") == CONFIGURE:
        raise OPENAI_ERRORS.failure("refused the session", *codes, detail=detail)
    OPENAI_ERRORS.check("ended the session", *codes, detail=detail)
