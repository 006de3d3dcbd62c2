"""Fakes of ElevenLabs' ear and voice, by the types of the vendor's SDK 2.78."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bargein.bridge.websocket import Data
from bargein.nodes.fakes import (
    CHAR_S,
    Asked,
    FakeEar,
    FakeTurn,
    FakeVendor,
    FakeVoice,
    VendorMessage,
    VoiceRequest,
    base64_of,
)

__all__ = ["FakeElevenLabsEar", "FakeElevenLabsVoice"]


class _FakeElevenLabs(FakeVendor):
    key = "^xi-api-key: .|token="
    no_key: ClassVar[Mapping[str, Any]] = {
        "detail": {"status": "invalid_api_key", "message": "Invalid API key"}
    }


class FakeElevenLabsEar(_FakeElevenLabs, FakeEar):
    """``/v1/speech-to-text/realtime``: transcripts; a committed one ends a turn.

    Its messages have no number, so late ones would look new; it does not play that fault.
    """

    needed_keys = ("message_type", "text")

    faults = FakeEar.faults - {"backwards"}
    error: ClassVar[Mapping[str, Any] | None] = {"message_type": "transcriber_error", "error": "no"}

    def read(self, data: Data) -> bytes | Asked:
        """Return the audio of a chunk, or that it commits."""
        message = json.loads(data)
        if message["message_type"] != "input_audio_chunk":
            raise ValueError(f"unknown message {message['message_type']}")
        audio = base64.b64decode(message["audio_base_64"])
        self.received.append({**message, "audio_base_64": len(audio)})
        return "end" if message.get("commit") else audio

    def hello(self) -> Sequence[VendorMessage]:
        config = {"sample_rate": 16_000, "audio_format": "pcm_16000"}
        return ({"message_type": "session_started", "session_id": "s", "config": config},)

    def so_far(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return ({"message_type": "partial_transcript", "text": turn.text},)

    def over(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return ({"message_type": "committed_transcript", "text": turn.text},)


class FakeElevenLabsVoice(_FakeElevenLabs, FakeVoice):
    """``multi-stream-input``: audio with its characters; a closed context says flushed text."""

    needed_keys = ("audio", "contextId", "isFinal")

    time_keys = ("charStartTimesMs", "charDurationsMs")
    error: ClassVar[Mapping[str, Any] | None] = {
        "message": "no",
        "error": "internal_error",
        "code": 1011,
    }
    most_contexts = 5

    def read(self, data: Data) -> VoiceRequest | None:
        message = self.message(data)
        if message.get("close_socket"):
            return None
        return VoiceRequest(
            context=message["context_id"],
            text=message.get("text") or "",
            flush=bool(message.get("flush")),
            end=bool(message.get("close_context")),
        )

    def audio(self, context: str, word: str, at_s: float) -> Sequence[VendorMessage]:
        """Return audio, and the times of its characters from its own beginning."""
        alignment = {
            "chars": [*word],
            "charStartTimesMs": [round(1000 * CHAR_S * n) for n in range(len(word))],
            "charDurationsMs": [round(1000 * CHAR_S)] * len(word),
        }
        told = {"alignment": alignment, "normalizedAlignment": alignment}
        return ({"audio": base64_of(word), **told, "contextId": context},)

    def done(self, context: str) -> Sequence[VendorMessage]:
        """Return that the context is final."""
        return ({"isFinal": True, "contextId": context},)
