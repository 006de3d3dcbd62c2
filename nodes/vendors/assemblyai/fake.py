"""A fake of AssemblyAI's ear, by the types of the vendor's SDK 1.8."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from bargein.bridge.websocket import Data
from bargein.nodes.fakes import (
    BYTES_PER_S,
    LATE,
    Asked,
    FakeEar,
    FakeTurn,
    FaultKind,
    VendorMessage,
)

__all__ = ["FakeAssemblyAIEar"]

LEAST_S, MOST_S = 0.05, 1.0
"""How much audio a message may hold."""


class FakeAssemblyAIEar(FakeEar):
    """``/v3/ws``: numbered turns, in which some words are final."""

    needed_keys = ("type", "end_of_turn", "transcript", "turn_is_formatted")

    faults: ClassVar[frozenset[FaultKind]] = FakeEar.faults | LATE
    error: ClassVar[Mapping[str, Any] | None] = {"type": "Error", "error_code": 3005, "error": "no"}
    time_keys = ("start", "end")
    key = r"^authorization: .|[?&]token=[^&]"
    no_key: ClassVar[Mapping[str, Any]] = {"error": "Not authorized"}
    asks: ClassVar[Mapping[str, Asked]] = {
        "ForceEndpoint": "end",
        "Terminate": "close",
        "KeepAlive": None,
        "UpdateConfiguration": None,
    }

    def read(self, data: Data) -> bytes | Asked:
        """Refuse audio that is too short or too long."""
        seconds = len(data) / BYTES_PER_S
        if isinstance(data, bytes) and not LEAST_S <= seconds <= MOST_S:
            raise ValueError(f"Input duration violation: {1000 * seconds:.0f} ms")
        return super().read(data)

    def hello(self) -> Sequence[VendorMessage]:
        return ({"type": "Begin", "id": "session", "expires_at": 1_900_000_000},)

    def began(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return ({"type": "SpeechStarted", "timestamp": round(1000 * turn.began_s)},)

    def so_far(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        """Return a ``Turn`` whose last word is not final."""
        return (_turn(turn, final=turn.heard - 1),)

    def over(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        """Return the final ``Turn``, and the same again with formatted words."""
        over = _turn(turn, final=turn.heard, end_of_turn=True, end_of_turn_confidence=0.9)
        return (over, {**over, "turn_is_formatted": True})

    def goodbye(self, audio_s: float) -> Sequence[VendorMessage]:
        length_s = round(audio_s)
        told = {"audio_duration_seconds": length_s, "session_duration_seconds": length_s}
        return ({"type": "Termination", **told},)


def _turn(turn: FakeTurn, final: int, **more: Any) -> VendorMessage:
    words = [
        {"text": word, "start": round(1000 * start_s), "end": round(1000 * end_s)}
        | {"confidence": 0.7, "word_is_final": n < final}
        for n, (word, start_s, end_s) in enumerate(turn.times())
    ]
    return {
        "type": "Turn",
        "turn_order": turn.number,
        "turn_is_formatted": False,
        "end_of_turn": False,
        "transcript": " ".join(turn.words[: max(0, final)]),
        "end_of_turn_confidence": 0.1,
        "words": words,
        **more,
    }
