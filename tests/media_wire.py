"""A second wire, of the size of a carrier's media stream: JSON with media, marks and clear."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import trio
from websockets.http11 import Response

from bargein import Call, Identity, Message
from bargein.events import DTMFInput, UserAudio
from bargein.websocket import HttpRequest, http_response
from bargein.wires import (
    HostedCall,
    NewCall,
    Outbox,
    RateLimit,
    RequestRefusedError,
    Signals,
    WireConnection,
)

FRAME_BYTES = 640
CALLER_BYTES_PER_S = 32_000
AGENT_BYTES_PER_MS = 48


def _media(utterance: int, pcm: bytes) -> str:
    return json.dumps({"event": "media", "payload": base64.b64encode(pcm).decode()})


class MediaTransport:
    """A caller on the wire."""

    audio = True
    sample_rate_hz = 24_000

    def __init__(self, hosted: HostedCall, outbox: Outbox) -> None:
        self._hosted = hosted
        self.outbox = outbox
        self.call: Call | None = None
        self.fence = -1
        self._sent_ms: dict[int, float] = {}
        self._microphone = b""
        rate = hosted.limits.audio_rate
        self.sound = None if rate is None else RateLimit(rate, 5 * rate)
        self._messages = RateLimit(hosted.limits.messages_per_s, hosted.limits.message_burst)
        self.cleared = 0
        self.refused = 0

    def attached(self, call: Call) -> None:
        self.call = call

    def send(self, message: Message) -> None:
        """Send nothing: a telephone has no screen."""

    def play(self, utterance: int, pcm: bytes) -> None:
        if utterance <= self.fence:
            self._hosted.metrics.frames_dropped += 1
            return
        self._hosted.metrics.frames_out += 1
        self.outbox.enqueue_audio(utterance, pcm)
        sent_ms = self._sent_ms.get(utterance, 0.0) + len(pcm) / AGENT_BYTES_PER_MS
        self._sent_ms = {utterance: sent_ms}
        self.outbox.enqueue(json.dumps({"event": "mark", "name": f"{utterance}:{sent_ms:.3f}"}))

    def clear(self, utterance: int, reason: str) -> None:
        self.fence = max(self.fence, utterance)
        self._hosted.metrics.frames_dropped += self.outbox.drop_audio(utterance)
        self._hosted.metrics.barge_ins += 1
        self.cleared += 1
        self.outbox.enqueue_first(json.dumps({"event": "clear"}))

    def receive(self, data: str | bytes) -> None:
        """Apply a message; count one that is not right, or too much."""
        call = self.call
        if call is None or call.ended.is_set():
            return
        try:
            message = json.loads(data)
            if message["event"] == "media":
                self.hear(call, base64.b64decode(message["payload"], validate=True))
            elif not self._messages.take():
                raise ValueError("too many messages")
            else:
                self.obey(call, message)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            self.refused += 1

    def hear(self, call: Call, pcm: bytes) -> None:
        if len(pcm) > 3200 or len(pcm) % 2:
            raise ValueError("a piece has at most 100 ms")
        if self.sound is not None and not self.sound.take(len(pcm) / CALLER_BYTES_PER_S):
            self._hosted.metrics.over_budget["audio"] += 1
            return
        self._microphone += pcm
        while len(self._microphone) >= FRAME_BYTES:
            frame, self._microphone = (
                self._microphone[:FRAME_BYTES],
                self._microphone[FRAME_BYTES:],
            )
            self._hosted.metrics.frames_in += 1
            call.publish(UserAudio(pcm=frame))

    def obey(self, call: Call, message: dict[str, Any]) -> None:
        match message["event"]:
            case "mark":
                utterance, _, ms = message["name"].partition(":")
                if self.fence < int(utterance) <= max(self._sent_ms, default=-1):
                    call.report_playback(int(utterance), float(ms), "position")
            case "dtmf":
                call.publish(DTMFInput(button=message["digit"]))
            case "stop":
                call.end("hangup")
            case "start":
                pass
            case other:
                raise ValueError(other)


class MediaSession:
    """A call over the wire; it ends with its connection."""

    transport_class: type[MediaTransport] = MediaTransport
    is_bounded = True

    def __init__(self, connection: WireConnection, call: HostedCall) -> None:
        self._connection = connection
        self._hosted = call
        most = call.limits.max_waiting_bytes if self.is_bounded else 10**12
        self._outbox = Outbox(max_bytes=most, on_broken=self._overflows, encode_audio=_media)
        self._transport = self.transport_class(call, self._outbox)
        self._over = trio.Event()

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.carry)
            end = await self._hosted.run(self._transport)
            if end.was_refused:
                self._connection.end_with(end.close_code, str(end.code))
            self._outbox.close()
            with trio.move_on_after(self._hosted.limits.close_s):
                await self._over.wait()
            nursery.cancel_scope.cancel()

    async def carry(self) -> None:
        await self._connection.run(self._outbox, self._transport.receive)
        self._over.set()
        self.left()

    def left(self) -> None:
        self._hosted.end("hangup")

    def _overflows(self) -> None:
        self._connection.end_with(1008, "it reads too slowly")
        self._hosted.end("disconnected")

    def counts(self) -> Mapping[str, object]:
        return {"barge_ins": self._transport.cleared, "refused": self._transport.refused}


class MediaWire:
    """The wire."""

    name = "media"
    paths = ("/media",)
    webhooks = ("/media/incoming",)
    signals = Signals(knows_played=True, carries_dtmf=True)
    session_class: type[MediaSession] = MediaSession

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    def answer(self, request: HttpRequest) -> NewCall | Response:
        if request.route == "/media/incoming":
            self.bodies.append(request.body)
            return http_response(HTTPStatus.OK, "application/xml", b"<Connect/>")
        if request.query.get("version", "1") != "1":
            raise RequestRefusedError("bad_message", "this speaks version 1")
        return NewCall()

    def session(self, connection: WireConnection, call: HostedCall) -> MediaSession:
        return self.session_class(connection, call)


class SignedMediaWire(MediaWire):
    """The same for a carrier that signs what it sends."""

    def identify(self, request: HttpRequest) -> Identity | None:
        return Identity("carrier") if request.headers.get("X-Signature") == "right" else None
