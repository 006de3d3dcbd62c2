"""ElevenLabs' speech recogniser (``/v1/speech-to-text/realtime``), by the vendor's SDK 2.78."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

from bargein.bridge.validation.arguments import check_strings
from bargein.bridge.websocket import Data
from bargein.nodes.services import LineArguments, text_of
from bargein.nodes.services.vendor_ear import SAMPLE_RATE_HZ, PlainEarCodec, VendorEar
from bargein.nodes.speech import EarFact, TurnOver, WordsHeard

from ._address import ELEVENLABS
from .errors import ELEVENLABS_ERRORS

__all__ = ["ElevenLabsEar"]


class ElevenLabsEar(VendorEar):
    """Hears with ElevenLabs' Scribe, which ends a turn after a silence.

    It reports words, but no times and no probability that a turn is over.
    """

    def __init__(
        self,
        *,
        api_key: str | None = None,
        model: str = "scribe_v2_realtime",
        language: str | None = None,
        keyterms: Sequence[str] = (),
        silence_s: float | None = None,
        **line: Unpack[LineArguments],
    ) -> None:
        """Configure the ear; nothing connects yet.

        Args:
            api_key: The key; ``None`` reads ELEVENLABS_API_KEY.
            model: The vendor's name of the model.
            language: An ISO 639 code; ``None`` lets the model detect it.
            keyterms: Words that callers are likely to use, at most 50.
            silence_s: Silence that ends a turn, 0.3 to 3 s; ``None`` for the vendor's default.
            line: Where and how it connects, as `LineArguments` says.

        Raises:
            TypeError: `keyterms` is not a list of strings, or `headers` or `query` is no mapping.
            ValueError: There is no key, or an address or a header that cannot be used.
        """
        check_strings("ElevenLabsEar(keyterms=)", keyterms)
        asked = {
            "model_id": model,
            "audio_format": "pcm_16000",
            "commit_strategy": "vad",
            "language_code": language,
            "vad_silence_threshold_secs": silence_s,
            "keyterms": tuple(keyterms),
        }
        at = ELEVENLABS.at(type(self).__name__, api_key, line)
        address = at.address("/v1/speech-to-text/realtime", asked)
        super().__init__(
            address,
            ScribeCodec,
            limits=line.get("limits"),
            wire_bytes=1.4,  # base64
            dial=line.get("dial"),
        )


class ScribeCodec(PlainEarCodec):
    """The messages of ``/v1/speech-to-text/realtime``."""

    piece_s = 0.1

    def audio(self, pcm: bytes) -> Data:
        """Return the audio as base64 in JSON: the vendor takes no binary messages."""
        return self._chunk(pcm, commit=False)

    def end_turn(self) -> Data:
        """Return a commit without audio."""
        return self._chunk(b"", commit=True)

    def _chunk(self, pcm: bytes, *, commit: bool) -> str:
        return json.dumps(
            {
                "message_type": "input_audio_chunk",
                "audio_base_64": base64.b64encode(pcm).decode(),
                "commit": commit,
                "sample_rate": SAMPLE_RATE_HZ,
            }
        )

    def facts(self, message: Mapping[str, Any]) -> Iterable[EarFact]:
        kind = str(message["message_type"])
        if kind == "partial_transcript":
            yield WordsHeard(text_of(message.get("text")))
        elif kind == "committed_transcript":
            yield TurnOver(text_of(message.get("text")))
        elif "error" in message:
            ELEVENLABS_ERRORS.check("ended the session", kind, detail=message["error"])
