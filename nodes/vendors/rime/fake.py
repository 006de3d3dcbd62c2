"""A fake of Rime's voice (``/ws3``), by the vendor's page "Websockets JSON"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bargein.bridge.websocket import Data, HttpRequest
from bargein.nodes.fakes import CHAR_S, FakeVoice, VendorMessage, VoiceRequest, base64_of

__all__ = ["FakeRimeVoice"]

WANTED = ("speaker", "modelId", "audioFormat", "samplingRate")


class FakeRimeVoice(FakeVoice):
    """Chunks with the times of their words; a line says one text at a time."""

    needed_keys = ("type", "data")

    time_keys = ("start", "end")
    key = "^authorization: bearer ."
    no_key: ClassVar[Mapping[str, Any]] = {"error": "Unauthorized"}
    error: ClassVar[Mapping[str, Any] | None] = {"type": "error", "message": "no"}

    def admit(self, request: HttpRequest) -> tuple[int, Mapping[str, Any]] | None:
        """Refuse a request without a key, or without what every synthesis needs."""
        missing = [name for name in WANTED if name not in request.query]
        no_name = (400, {"error": f"{missing[0]} is missing"}) if missing else None
        return super().admit(request) or no_name

    def read(self, data: Data) -> VoiceRequest | None:
        message = self.message(data)
        match message.get("operation"):
            case None:
                return VoiceRequest(context="", text=message["text"])
            case "flush":
                return VoiceRequest(context="", flush=True)
            case "clear":
                return VoiceRequest(context="", cancel=True)
            case "eos":
                return VoiceRequest(context="", close=True)
        raise ValueError(f"unknown operation {message['operation']}")

    def audio(self, context: str, word: str, at_s: float) -> Sequence[VendorMessage]:
        """Return a chunk, and its word's times, counted from the chunk's beginning."""
        times = {"words": [word.strip()], "start": [0.0], "end": [len(word) * CHAR_S]}
        return (
            {"type": "chunk", "data": base64_of(word), "contextId": None},
            {"type": "timestamps", "word_timestamps": times, "contextId": None},
        )

    def flushed(self, context: str, number: int) -> Sequence[VendorMessage]:
        return ({"type": "done", "contextId": None},)
