"""Fakes of Cartesia's ear and voice, by the types of the vendor's SDK 4.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bargein.bridge.websocket import Data, HttpRequest
from bargein.nodes.fakes import (
    CHAR_S,
    LATE,
    Asked,
    FakeEar,
    FakeTurn,
    FakeVendor,
    FakeVoice,
    FaultKind,
    VendorMessage,
    VoiceRequest,
    base64_of,
)

__all__ = ["FakeCartesiaEar", "FakeCartesiaVoice"]

REQUEST = "11111111-2222-3333-4444-555555555555"


class _FakeCartesia(FakeVendor):
    key = r"^(authorization|x-api-key): .|api_key="
    no_key: ClassVar[Mapping[str, Any]] = {"error_code": "unauthorized", "title": "Unauthorized"}

    def admit(self, request: HttpRequest) -> tuple[int, Mapping[str, Any]] | None:
        """Refuse a request without a key or a version."""
        if not request.headers.get("Cartesia-Version") and "cartesia_version=" not in request.path:
            no_version = {"error_code": "version_required", "title": "Version required"}
            return super().admit(request) or (400, no_version)
        return super().admit(request)


class FakeCartesiaEar(_FakeCartesia, FakeEar):
    """``/stt/turns/websocket``: turns; each message has all words so far, without times."""

    needed_keys = ("type", "transcript")

    faults: ClassVar[frozenset[FaultKind]] = FakeEar.faults - {"backwards"} | LATE
    error: ClassVar[Mapping[str, Any] | None] = {
        "type": "error",
        "error_code": "internal_error",
        "message": "no",
        "request_id": REQUEST,
        "status_code": 500,
        "title": "no",
    }

    asks: ClassVar[Mapping[str, Asked]] = {"config": None, "close": "close"}
    """The vendor cannot be asked to end a turn."""

    def hello(self) -> Sequence[VendorMessage]:
        return (_message("connected"),)

    def began(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return (_message("turn.start"),)

    def so_far(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return (_message("turn.update", transcript=turn.text),)

    def perhaps(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return (_message("turn.eager_end", transcript=turn.text),)

    def resumed(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return (_message("turn.resume"),)

    def over(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return (_message("turn.end", transcript=turn.text),)


def _message(kind: str, **more: Any) -> VendorMessage:
    return {"type": kind, "request_id": REQUEST, **more}


class FakeCartesiaVoice(_FakeCartesia, FakeVoice):
    """``/tts/websocket``: contexts with chunks, each followed by the times of its words."""

    needed_keys = ("type", "context_id", "data")

    time_keys = ("start", "end")
    error: ClassVar[Mapping[str, Any] | None] = {
        "type": "error",
        "done": True,
        "status_code": 500,
        "error_code": "internal_error",
        "title": "no",
        "message": "no",
    }

    def read(self, data: Data) -> VoiceRequest | None:
        message = self.message(data)
        context = message["context_id"]
        if message.get("cancel"):
            return VoiceRequest(context=context, cancel=True)
        for field in ("model_id", "voice", "output_format", "transcript"):
            if field not in message:
                raise ValueError(f"{field} is missing")
        return VoiceRequest(
            context=context,
            text=message["transcript"],
            flush=bool(message.get("flush")),
            end=not message.get("continue"),
        )

    def audio(self, context: str, word: str, at_s: float) -> Sequence[VendorMessage]:
        """Return a chunk, and its word's times, counted from the context's beginning."""
        times = {
            "words": [word.strip()],
            "start": [at_s],
            "end": [at_s + len(word.strip()) * CHAR_S],
        }
        head = {"context_id": context, "status_code": 206, "done": False}
        return (
            {**head, "type": "chunk", "data": base64_of(word), "step_time": 1.0},
            {**head, "type": "timestamps", "word_timestamps": times},
        )

    def flushed(self, context: str, number: int) -> Sequence[VendorMessage]:
        head = {"context_id": context, "status_code": 206, "done": False}
        return ({**head, "type": "flush_done", "flush_done": True, "flush_id": number},)

    def done(self, context: str) -> Sequence[VendorMessage]:
        return ({"type": "done", "context_id": context, "status_code": 200, "done": True},)
