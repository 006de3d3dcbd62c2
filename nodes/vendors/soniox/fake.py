"""A fake of Soniox's ear, by the types of the vendor's SDK 2.10."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from bargein.bridge.websocket import Data
from bargein.nodes.fakes import LATE, Asked, FakeEar, FakeTurn, FaultKind, VendorMessage

__all__ = ["FakeSonioxEar"]

NEEDED = {"model", "audio_format", "sample_rate", "num_channels"}


class FakeSonioxEar(FakeEar):
    """``/transcribe-websocket``: tokens, two a word; a word is final once the next one is heard."""

    needed_keys = ("tokens", "text", "is_final")

    faults: ClassVar[frozenset[FaultKind]] = FakeEar.faults | LATE
    time_keys = ("start_ms", "end_ms")
    error: ClassVar[Mapping[str, Any] | None] = {
        "tokens": [],
        "error_code": 503,
        "error_message": "Cannot continue request (code 1). Please restart the request.",
    }

    key = "^authorization: bearer ."
    no_key: ClassVar[Mapping[str, Any]] = {"error_code": 401, "error_message": "Missing API key."}

    def read(self, data: Data) -> bytes | Asked:
        """Return what a message asks for; an empty text ends the session."""
        if isinstance(data, bytes):
            return data
        if not data:
            return "close"
        message = self.message(data)
        if "type" not in message and not message.keys() >= NEEDED:
            raise ValueError(f"{', '.join(sorted(NEEDED - message.keys()))} is missing")
        return "end" if message.get("type") == "finalize" else None

    def so_far(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        """Return the words that have become final, and the newest one."""
        final = turn.settle(turn.heard - 1)
        newest = turn.times()[-1:]
        return (_message(turn, [*_tokens(final, True), *_tokens(newest, False)]),)

    def over(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        """Return the rest of the words, and the token that ends the turn."""
        end = {"text": "<fin>" if turn.is_forced else "<end>", "is_final": True}
        return (_message(turn, [*_tokens(turn.settle(turn.heard), True), end]),)

    def goodbye(self, audio_s: float) -> Sequence[VendorMessage]:
        ms = round(1000 * audio_s)
        progress = {"final_audio_proc_ms": ms, "total_audio_proc_ms": ms}
        return ({"tokens": [], **progress, "finished": True},)


def _message(turn: FakeTurn, tokens: Sequence[Mapping[str, Any]]) -> VendorMessage:
    ms = round(1000 * turn.now_s)
    return {"tokens": tokens, "final_audio_proc_ms": ms, "total_audio_proc_ms": ms}


def _tokens(
    words: Iterable[tuple[str, float, float]], is_final: bool
) -> Iterable[Mapping[str, Any]]:
    """Yield two tokens for each word, the first of them with the space before it."""
    for word, start_s, end_s in words:
        middle_s = (start_s + end_s) / 2
        half = (len(word) + 1) // 2
        for text, begin_s, until_s in (
            (f" {word[:half]}", start_s, middle_s),
            (word[half:], middle_s, end_s),
        ):
            if text:
                yield {
                    **{"text": text, "is_final": is_final, "confidence": 0.9, "language": "en"},
                    "start_ms": round(1000 * begin_s),
                    "end_ms": round(1000 * until_s),
                }
