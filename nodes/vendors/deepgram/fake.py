"""Fakes of Deepgram's ears and voices, by the types of the vendor's SDK 7.17.

The audio of a voice does not name its utterance, so a connection says one utterance at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import trio

from bargein.bridge.websocket import Data
from bargein.nodes.fakes import (
    CHAR_S,
    LATE,
    Asked,
    FakeEar,
    FakeLine,
    FakeTurn,
    FakeVendor,
    FakeVoice,
    Fault,
    FaultKind,
    VendorMessage,
    VoiceRequest,
    pcm_of,
)

__all__ = ["FakeDeepgramAura", "FakeDeepgramFlux", "FakeDeepgramFluxVoice", "FakeDeepgramNova"]

REQUEST = "11111111-2222-3333-4444-555555555555"


class _FakeDeepgram(FakeVendor):
    key = r"^authorization: (token|bearer) ."
    no_key: ClassVar[Mapping[str, Any]] = {
        "err_code": "INVALID_AUTH",
        "err_msg": "Invalid credentials.",
    }


ASKS: Mapping[str, Asked] = {"CloseStream": "close", "KeepAlive": None, "Configure": None}


class FakeDeepgramFlux(_FakeDeepgram, FakeEar):
    """``/v2/listen``: turns with probabilities; each message has the whole turn."""

    needed_keys = ("type", "event", "transcript")

    faults: ClassVar[frozenset[FaultKind]] = FakeEar.faults | LATE
    error: ClassVar[Mapping[str, Any] | None] = {
        "type": "Error",
        "sequence_id": 9,
        "code": "INTERNAL_SERVER_ERROR",
        "description": "no",
    }
    time_keys = ("start", "end")
    asks: ClassVar[Mapping[str, Asked]] = {**ASKS, "ForceEndTurn": "end"}

    def __init__(self, *turns: str, fault: Fault | None = None) -> None:
        super().__init__(*turns, fault=fault)
        self._sequence = 0

    def hello(self) -> Sequence[VendorMessage]:
        return ({"type": "Connected", "request_id": REQUEST, "sequence_id": self._number()},)

    def began(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        """Return ``StartOfTurn``; the vendor sometimes adds a first word, the fake never does."""
        return (self._turn("StartOfTurn", turn, 0.05),)

    def so_far(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return (self._turn("Update", turn, 0.1),)

    def perhaps(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return (self._turn("EagerEndOfTurn", turn, 0.5),)

    def resumed(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return (self._turn("TurnResumed", turn, 0.1),)

    def over(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        trigger = "force_end_turn" if turn.is_forced else "model"
        return ({**self._turn("EndOfTurn", turn, 0.9), "trigger": trigger},)

    def _turn(self, event: str, turn: FakeTurn, sure: float) -> VendorMessage:
        words = [
            {"word": word, "confidence": 0.9, "start": start_s, "end": end_s}
            for word, start_s, end_s in turn.times()
        ]
        return {
            "type": "TurnInfo",
            "request_id": REQUEST,
            "sequence_id": self._number(),
            "event": event,
            "turn_index": turn.number,
            "audio_window_start": turn.began_s,
            "audio_window_end": turn.now_s,
            "transcript": turn.text,
            "words": words,
            "end_of_turn_confidence": sure,
        }

    def _number(self) -> int:
        self._sequence += 1
        return self._sequence


class FakeDeepgramNova(_FakeDeepgram, FakeEar):
    """``/v1/listen``: segments; it reports the end of words and the end of speech separately.

    Its errors do not end the stream.
    """

    needed_keys = (
        "type",
        "channel",
        "alternatives",
        "transcript",
        "is_final",
        "speech_final",
        "from_finalize",
    )

    faults: ClassVar[frozenset[FaultKind]] = FakeEar.faults - {"error"} | LATE
    time_keys = ("start", "end")
    asks: ClassVar[Mapping[str, Asked]] = {**ASKS, "Finalize": "end"}

    def began(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return ({"type": "SpeechStarted", "channel": [0, 1], "timestamp": turn.began_s},)

    def so_far(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        return (_results(turn),)

    def over(self, turn: FakeTurn) -> Sequence[VendorMessage]:
        end = {"from_finalize": True} if turn.is_forced else {"speech_final": True}
        return (_results(turn, is_final=True, **end),)

    def goodbye(self, audio_s: float) -> Sequence[VendorMessage]:
        return (
            {
                "type": "Metadata",
                "transaction_key": "deprecated",
                "request_id": REQUEST,
                "sha256": "0" * 64,
                "created": "2026-11-01T00:00:00.000Z",
                "duration": audio_s,
                "channels": 1,
            },
        )


def _results(turn: FakeTurn, **more: bool) -> VendorMessage:
    words = [
        {"word": word, "punctuated_word": word, "confidence": 0.8, "start": start, "end": end}
        for word, start, end in turn.times()
    ]
    return {
        "type": "Results",
        "channel_index": [0, 1],
        "duration": turn.now_s - turn.began_s,
        "start": turn.began_s,
        "is_final": False,
        "speech_final": False,
        "from_finalize": False,
        "channel": {"alternatives": [{"transcript": turn.text, "confidence": 0.8, "words": words}]},
        "metadata": {
            "request_id": REQUEST,
            "model_uuid": REQUEST,
            "model_info": {"name": "nova-3", "version": "2026-01-01.0", "arch": "nova-3"},
        },
        **more,
    }


SPEECH = "dg_sp_0123456789a"
"""The vendor's name of a turn, without the turn's number."""

MODEL: Mapping[str, Any] = {
    "request_id": REQUEST,
    "model_name": "fake",
    "model_version": "2026-01-01.0",
}
FLUSHES, WITHIN_S = 20, 60.0
"""How often ``/v1/speak`` may be flushed on a line, within how many seconds."""

CONTROLS = {"pronunciations_applied": 0, "breaks_applied": 0, "pronunciation_warnings": 0}


class _FakeDeepgramVoice(_FakeDeepgram, FakeVoice):
    faults: ClassVar[frozenset[FaultKind]] = FakeVoice.faults - {"backwards"}  # it sends no times
    stop: ClassVar[str]

    def read(self, data: Data) -> VoiceRequest | None:
        message = self.message(data)
        match message["type"]:
            case "Speak":
                return VoiceRequest(context="", text=message["text"])
            case "Flush":
                return VoiceRequest(context="", flush=True)
            case "Close":
                return VoiceRequest(context="", close=True)
            case self.stop:
                return VoiceRequest(context="", cancel=True)
        raise ValueError(f"unknown message {message['type']}")

    def audio(self, context: str, word: str, at_s: float) -> Sequence[bytes]:
        """Return audio in two messages; the first ends in the middle of a sample."""
        pcm = pcm_of(word)
        return pcm[:501], pcm[501:]


class FakeDeepgramFluxVoice(_FakeDeepgramVoice):
    """``/v2/speak``: each flush is a turn, echoed at once and ended by ``SpeechMetadata``."""

    needed_keys = ("type", "speech_id")

    error: ClassVar[Mapping[str, Any] | None] = {
        "type": "Error",
        "code": "NET-0000",
        "description": "no",
    }
    stop = "Interrupt"

    def hello(self) -> Sequence[VendorMessage]:
        return ({"type": "Connected", **MODEL, "model_uuids": [REQUEST]},)

    def taken(self, asked: VoiceRequest) -> Sequence[VendorMessage]:
        """Return the echo of a flush."""
        return ({"type": "Flushed", "speech_id": f"{SPEECH}0"},) if asked.flush else ()

    def began(self, context: str, number: int) -> Sequence[VendorMessage]:
        return ({"type": "SpeechStarted", "speech_id": f"{SPEECH}{number}"},)

    def flushed(self, context: str, number: int) -> Sequence[VendorMessage]:
        return ({"type": "SpeechMetadata", **_metadata(0.0, number)},)

    def stopped(self, context: str, at_s: float) -> Sequence[VendorMessage]:
        """Return ``SpeechInterrupted``, without an offset in the text."""
        interrupted = {"type": "SpeechInterrupted", "audio_played_ms": round(1000 * at_s)}
        return ({**interrupted, "metadata": _metadata(at_s)},)


def _metadata(audio_s: float, number: int = 1) -> dict[str, Any]:
    characters = round(audio_s / CHAR_S)
    return {
        "speech_id": f"{SPEECH}{number}",
        "audio_duration_ms": round(1000 * audio_s),
        "input_character_count": characters,
        "billable_character_count": characters,
        "controls_applied": CONTROLS,
    }


class FakeDeepgramAura(_FakeDeepgramVoice):
    """``/v1/speak``: ``Flushed`` follows the audio of all flushed text; 20 flushes a minute."""

    needed_keys = ("type", "sequence_id")

    error: ClassVar[Mapping[str, Any] | None] = {
        "type": "Warning",
        "code": "EXCESSIVE_FLUSH",
        "description": "The Flush is not processed.",
    }
    stop = "Clear"

    def __init__(self, fault: Fault | None = None) -> None:
        super().__init__(fault)
        self._flushed_s: WeakKeyDictionary[FakeLine, deque[float]] = WeakKeyDictionary()

    def refused(self, asked: VoiceRequest, line: FakeLine) -> Sequence[VendorMessage]:
        """Return a warning for a flush too many."""
        if not asked.flush:
            return ()
        times = self._flushed_s.setdefault(line, deque(maxlen=FLUSHES))
        now = trio.current_time()
        if len(times) == FLUSHES and now < times[0] + WITHIN_S:
            return (self.error,) if self.error else ()
        times.append(now)
        return ()

    def hello(self) -> Sequence[VendorMessage]:
        return ({"type": "Metadata", **MODEL, "model_uuid": REQUEST},)

    def flushed(self, context: str, number: int) -> Sequence[VendorMessage]:
        return ({"type": "Flushed", "sequence_id": number - 1},)

    def stopped(self, context: str, at_s: float) -> Sequence[VendorMessage]:
        return ({"type": "Cleared", "sequence_id": 0},)
