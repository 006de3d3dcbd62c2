"""The other ends of wires, as ``check_wire`` plays them."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from bargein.protocol import (
    AgentFrame,
    Clear,
    CustomInput,
    HangUp,
    KeyPress,
    Ping,
    PlaybackReport,
    TextInput,
    UseVerb,
    decode_server,
    encode,
)
from bargein.wires import PeerRead


class MediaPeer:
    """The other end of ``MediaWire``."""

    path = "/media"

    def opening(self) -> Sequence[str]:
        return [json.dumps({"event": "start"})]

    def sound(self, pcm: bytes) -> str:
        return json.dumps({"event": "media", "payload": base64.b64encode(pcm).decode()})

    def hang_up(self) -> str:
        return json.dumps({"event": "stop"})

    def malformed(self) -> Sequence[str]:
        return [
            '{"event": "media", "payload": "?"}',
            '{"event": "media", "payload": 3}',
            '{"event": "media", "payload": "AAA="}',
            '{"event": "mark", "name": "x"}',
            '{"event": "mark", "name": "1:nan"}',
            '{"event": "dtmf", "digit": "telephone"}',
        ]

    def messages(self) -> Sequence[str]:
        return [json.dumps({"event": "dtmf", "digit": "5"})]

    def read(self, data: str | bytes) -> PeerRead:
        message = json.loads(data)
        match message["event"]:
            case "media":
                return PeerRead(base64.b64decode(message["payload"]))
            case "mark":
                return PeerRead(answers=(json.dumps(message),))
        return PeerRead(is_clear=message["event"] == "clear")


class NativePeer:
    """The other end of the native wire."""

    path = "/ws"

    def __init__(self) -> None:
        self._played: dict[int, float] = {}

    def opening(self) -> Sequence[str]:
        return []

    def sound(self, pcm: bytes) -> bytes:
        return pcm

    def hang_up(self) -> str | bytes:
        return encode(HangUp())

    def malformed(self) -> Sequence[str | bytes]:
        return [
            '{"type": "playback.position", "utterance": 7, "played_ms": 1}',
            '{"type": "playback.position", "utterance": -1, "played_ms": 1}',
            '{"type": "text", "text": 3}',
            '{"type": "control", "verb": "fly", "request": 1}',
            b"\x00" * 33,
        ]

    def messages(self) -> Sequence[str | bytes]:
        return [
            encode(KeyPress(button="5")),
            encode(TextInput(text="A latte, please.")),
            encode(UseVerb(verb="barge_in", request=1)),
            encode(Ping(t=1.0)),
            encode(CustomInput(metadata={"seat": 4})),
        ]

    def read(self, data: str | bytes) -> PeerRead:
        message = decode_server(data)
        if isinstance(message, AgentFrame):
            played_ms = self._played.get(message.utterance, 0.0) + len(message.pcm) / 48
            self._played[message.utterance] = played_ms
            report = PlaybackReport(
                type="playback.position", utterance=message.utterance, played_ms=played_ms
            )
            return PeerRead(message.pcm, answers=(encode(report),))
        return PeerRead(is_clear=isinstance(message, Clear))
