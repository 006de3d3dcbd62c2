"""Fakes of Deepgram's voices, by the types of the vendor's SDK 7.17.

Audio does not name its utterance, so a connection says one utterance at a time.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import trio

from bargein.bridge.websocket import Data, HttpRequest

from ._deepgram import REQUEST, refusal
from ._fake_vendor import FakeLine
from ._fake_voice import CHAR_S, FakeVoice, VendorMessage, VoiceRequest, pcm_of
from ._fault import Fault, FaultKind

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


class _FakeDeepgramVoice(FakeVoice):
    faults: ClassVar[frozenset[FaultKind]] = FakeVoice.faults - {"backwards"}  # it sends no times
    stop: ClassVar[str]

    def admit(self, request: HttpRequest) -> tuple[int, Mapping[str, Any]] | None:
        """Refuse a request without a key."""
        return refusal(request)

    def read(self, data: Data) -> VoiceRequest | None:
        """Parse a message."""
        message = json.loads(data)
        self.received.append(message)
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

    error: ClassVar[Mapping[str, Any] | None] = {
        "type": "Error",
        "code": "NET-0000",
        "description": "no",
    }
    stop = "Interrupt"

    def hello(self) -> Sequence[VendorMessage]:
        """Return ``Connected``."""
        return ({"type": "Connected", **MODEL, "model_uuids": [REQUEST]},)

    def taken(self, asked: VoiceRequest) -> Sequence[VendorMessage]:
        """Return the echo of a flush."""
        return ({"type": "Flushed", "speech_id": f"{SPEECH}0"},) if asked.flush else ()

    def began(self, context: str, number: int) -> Sequence[VendorMessage]:
        """Return ``SpeechStarted``."""
        return ({"type": "SpeechStarted", "speech_id": f"{SPEECH}{number}"},)

    def flushed(self, context: str, number: int) -> Sequence[VendorMessage]:
        """Return ``SpeechMetadata``."""
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

    error: ClassVar[Mapping[str, Any] | None] = {
        "type": "Warning",
        "code": "EXCESSIVE_FLUSH",
        "description": "The Flush is not processed.",
    }
    stop = "Clear"

    def __init__(self, fault: Fault | None = None) -> None:
        """Start without a connection; see `FakeVendor`."""
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
        """Return ``Metadata``."""
        return ({"type": "Metadata", **MODEL, "model_uuid": REQUEST},)

    def flushed(self, context: str, number: int) -> Sequence[VendorMessage]:
        """Return ``Flushed``."""
        return ({"type": "Flushed", "sequence_id": number - 1},)

    def stopped(self, context: str, at_s: float) -> Sequence[VendorMessage]:
        """Return ``Cleared``."""
        return ({"type": "Cleared", "sequence_id": 0},)
