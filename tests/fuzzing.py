"""Frames that nobody should send, by the hundred thousand, to a server on this machine.

``python -m tests.fuzzing`` sends WebSocket frames, right and wrong, and JSON messages, right and
wrong, over many connections, a few at a time.  The server may answer with errors and close
connections.  It may log no failure of its own, callers in peace must get their answers, and
in the end no task, no call and no memory is left.  The same JSON messages go to the codec of either
side, which may raise ``ProtocolViolationError`` and nothing else.

A run is as its seed, which is printed first: what is sent, not when it arrives.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import socket
import struct
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
import trio

from bargein import App, Call, Message
from bargein.client import Transcript, open_caller
from bargein.events import (
    AgentResponse,
    UserAudio,
    UserStartedSpeaking,
    UserTranscriptionReceived,
)
from bargein.protocol import ProtocolViolationError, decode_client, decode_server
from bargein.server import Limits, open_server
from tests.living import living_tasks
from tests.plain_voice import PlainVoice

AT_ONCE = 8
"""Connections at the same time."""

LONGEST = 40
"""Frames of one connection, unless it is closed before."""

GROWTH_BYTES = 15_000_000
"""How much larger the process may be at the end than after the first tenth."""

LIMITS = Limits(handshake_s=2, close_s=0.5, stall_s=3, resume_s=0.3, silence_s=5, max_calls=200)

MESSAGES: tuple[dict[str, Any], ...] = (
    {"type": "text", "text": "hello"},
    {"type": "text", "text": "go on"},
    {"type": "playback.start", "utterance": 1, "played_ms": 0},
    {"type": "playback.position", "utterance": 1, "played_ms": 120.5, "queued_ms": 200},
    {"type": "playback.done", "utterance": 2, "played_ms": 400},
    {"type": "playback.underrun", "utterance": 1, "played_ms": 3, "underruns": 2},
    {"type": "playback.flushed", "utterance": 1, "played_ms": 80, "request": 1},
    {"type": "dtmf", "button": "5"},
    {"type": "custom", "metadata": {"page": 3, "deep": {"list": [1, 2, {"a": None}]}}},
    {"type": "sound", "on": True},
    {"type": "sound", "on": False},
    {"type": "mute", "on": True},
    {"type": "mute", "on": False},
    {"type": "stop"},
    {"type": "ping", "t": 1.5, "received": 4},
    {"type": "control", "verb": "cancel", "request": 7},
    {"type": "control", "verb": "pause"},
    {"type": "control", "verb": "resume", "text": "only two"},
    {"type": "control", "verb": "redirect", "text": "say less"},
    {"type": "control", "verb": "background"},
    {"type": "control", "verb": "emergency_stop"},
    {"type": "permission", "id": "call_1", "allow": True, "remember": True},
    {"type": "describe", "verb": "cancel", "request": 3},
    {"type": "snapshot", "request": 4, "follow": True},
    {"type": "watch", "on": True},
    {"type": "resume", "token": "a" * 43, "received": 3, "utterance": 1, "audio_bytes": 4800},
)
"""One of each kind that a client sends; what ends its call is left to chance."""

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, -(2**63), 10**30, 0.5, -0.0, 1e308, "", " ", "x",
    "\x00", "\ud800", "\u202e", "a" * 300, "é" * 10_001, [], {}, [[]], {"": ""}, ["text"], "text",
)  # fmt: skip


# --- what is sent ---------------------------------------------------------------------------------


def odd_json(dice: random.Random, base: dict[str, Any]) -> str:
    """Return a JSON message with something changed, or what is no JSON any more."""
    message = dict(base)
    for _ in range(dice.choice((0, 1, 1, 2, 3))):
        name = dice.choice([*message, "extra"])
        match dice.randrange(4):
            case 0:
                message.pop(name, None)
            case 1:
                message[name] = dice.choice(ODD)
            case 2:
                message[name] = [message.get(name)] * dice.randrange(1, 4)
            case _:
                message[f"{name}_"] = message.get(name)
    text = json.dumps(message)
    match dice.randrange(12):
        case 0:
            at = dice.randrange(len(text))
            return text[:at] + dice.choice('{}[]",:\\ x0\x00é') + text[at + dice.randrange(2) :]
        case 1:
            return text[: dice.randrange(len(text))]
        case 2:
            return "[" * dice.randrange(1, 3000) + text
        case 3:
            return text.replace("1", dice.choice(("NaN", "Infinity", "1e999", "01", "-")))
        case 4:
            return text[:-1] + ', "type": "text", "text": 3}'
    return text


def frame(
    opcode: int, payload: bytes, *, fin: bool = True, rsv: int = 0, masked: bool = True
) -> bytes:
    """Return a frame, masked by zeros, with the shortest form of its length."""
    mask = 0x80 * masked
    size = len(payload)
    if size < 126:
        length = bytes([mask | size])
    elif size < 65_536:
        length = bytes([mask | 126]) + struct.pack("!H", size)
    else:
        length = bytes([mask | 127]) + struct.pack("!Q", size)
    return bytes([0x80 * fin | rsv << 4 | opcode]) + length + bytes(4 * masked) + payload


def lawful_frames(dice: random.Random) -> list[bytes]:
    """Return frames that the WebSocket protocol allows; what they hold is another thing."""
    match dice.randrange(10):
        case 0 | 1 | 2:
            return [frame(2, bytes(dice.choice((0, 1, 2, 320, 640, 641, 3200, 3202, 70_000))))]
        case 3:
            return [frame(dice.choice((9, 10)), dice.randbytes(dice.randrange(126)))]
        case 4:  # one message in pieces, with a ping in between
            text = odd_json(dice, dice.choice(MESSAGES)).encode(errors="surrogatepass")
            cut = dice.randrange(len(text) + 1)
            parts = [frame(1, text[:cut], fin=False), frame(9, b""), frame(0, b"", fin=False)]
            return [*parts, frame(0, text[cut:])]
    return [frame(1, odd_json(dice, dice.choice(MESSAGES)).encode(errors="surrogatepass"))]


def unlawful_frame(dice: random.Random) -> bytes:
    """Return a frame for which a connection has to be closed."""
    match dice.randrange(11):
        case 0:
            return frame(dice.choice((3, 4, 5, 6, 7, 11, 12, 13, 14, 15)), b"x")
        case 1:
            return frame(1, b"{}", rsv=dice.randrange(1, 8))
        case 2:
            return frame(1, b"{}", masked=False)
        case 3:
            return frame(9, bytes(126))
        case 4:
            return frame(dice.choice((8, 9, 10)), b"", fin=False)
        case 5:
            return frame(0, b"x")
        case 6:
            return frame(1, b"x", fin=False) + frame(1, b"y")
        case 7:
            return frame(
                1, dice.choice((b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"))
            )
        case 8:
            codes = (
                b"",
                b"\x03",
                *(struct.pack("!H", n) for n in (0, 999, 1000, 1005, 4001, 65535)),
            )
            return frame(8, dice.choice(codes) + dice.choice((b"", b"bye", b"\xff")))
        case 9:
            size = dice.choice((300_000, 2**40, 2**63 - 1, 2**63, 2**64 - 1))
            return bytes([0x82, 0x80 | 127]) + struct.pack("!Q", size) + bytes(4 + 100)
    return dice.randbytes(dice.randrange(1, 200))


def odd_request(dice: random.Random) -> bytes:
    """Return a request that is, more or less, no handshake."""
    path = dice.choice(
        ("/ws", "/ws?mode=text", "/ws?resume=1", "/metrics", "/%00", "/" + "x" * 9000)
    )
    lines = [f"GET {path} HTTP/1.1", "Host: localhost", "Upgrade: websocket", "Connection: Upgrade"]
    lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="]
    for _ in range(dice.randrange(3)):
        lines[dice.randrange(len(lines))] = dice.choice(
            ("", "X", "X: \x00", "Host: evil.example", "Content-Length: -1", "X: " + "y" * 20_000)
        )
    request = "\r\n".join([*lines, "", ""]).encode()
    if dice.randrange(4) == 0:
        request = bytes(b if dice.randrange(50) else dice.randrange(256) for b in request)
    return request


# --- the server and its callers -------------------------------------------------------------------


def silence(text: str) -> bytes:
    """Return 20 ms of silence for each character."""
    return bytes(960 * len(text))


async def answer(call: Call) -> None:
    """Repeat what was said, in pieces."""

    async def repeat(message: Message) -> AsyncIterator[AgentResponse]:
        yield AgentResponse(content="You said ")
        await trio.sleep(0.05)
        yield AgentResponse(content=message.event.content[:50])

    call.bridge(name="ears", is_agent=False).on(UserAudio).map(lambda message: None)
    agent = call.bridge(name="echo")
    agent.on(UserTranscriptionReceived).interrupt_on(UserStartedSpeaking).stream(repeat).broadcast()


@dataclass
class Fuzz:
    """One run, and what it has found."""

    port: int
    frames: int
    """How many are to be sent."""
    dice: random.Random
    sent: Counter[str] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)
    """What the server has sent, the first of it, for the codec of clients."""

    @property
    def sent_frames(self) -> int:
        """How many frames were sent so far."""
        return self.sent["lawful frames"] + self.sent["unlawful frames"]

    async def run(self) -> None:
        """Send all frames, over a few connections at a time."""
        async with trio.open_nursery() as nursery:
            for _ in range(AT_ONCE):
                nursery.start_soon(self._connect_again, random.Random(self.dice.random()))

    async def _connect_again(self, dice: random.Random) -> None:
        while self.sent_frames < self.frames:
            with trio.move_on_after(20):
                await self._connection(dice)

    async def _connection(self, dice: random.Random) -> None:
        stream = await trio.open_tcp_stream("127.0.0.1", self.port)
        self.sent["connections"] += 1
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._take, stream, nursery.cancel_scope)
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):  # it had enough
                    await self._talk(stream, dice)
                nursery.cancel_scope.cancel()
        finally:
            if dice.randrange(2):
                linger = struct.pack("ii", 1, 0)
                stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            stream.socket.close()

    async def _talk(self, stream: trio.SocketStream, dice: random.Random) -> None:
        if dice.randrange(10) == 0:
            self.sent["odd requests"] += 1
            await stream.send_all(odd_request(dice))
            await trio.sleep(0.05)
            return
        path = dice.choice(("/ws?mode=text", "/ws?mode=audio", "/ws?mode=audio", "/ws?resume=1"))
        await stream.send_all(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        await trio.sleep(0.01)
        for _ in range(dice.randrange(1, LONGEST)):
            frames = lawful_frames(dice)
            self.sent["lawful frames"] += len(frames)
            await self._send(stream, b"".join(frames), dice)
        if dice.randrange(4):
            self.sent["unlawful frames"] += 1
            await self._send(stream, unlawful_frame(dice), dice)
            await trio.sleep(0.02)

    async def _send(self, stream: trio.SocketStream, data: bytes, dice: random.Random) -> None:
        if dice.randrange(20) == 0:  # as networks cut it
            at = dice.randrange(len(data))
            await stream.send_all(data[:at])
            await trio.sleep(0.001)
            data = data[at:]
        await stream.send_all(data)

    async def _take(self, stream: trio.SocketStream, scope: trio.CancelScope) -> None:
        try:
            while data := await stream.receive_some(65_536):
                if len(self.texts) < 2000:
                    self.texts += _texts(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()  # the server has closed it


def _texts(data: bytes) -> list[str]:
    """Return the JSON messages at the beginning of what a server sent, if they are whole."""
    found = []
    while len(data) >= 4 and data[0] == 0x81:
        size, at = data[1], 2
        if size == 126:
            size, at = int.from_bytes(data[2:4], "big"), 4
        if size == 127 or len(data) < at + size:
            break
        found.append(data[at : at + size].decode())
        data = data[at + size :]
    return found


async def peaceful_caller(url: str, worst_s: list[float]) -> None:
    """Say something again and again, and note how long the answer took."""
    async with open_caller(url, mode="text") as caller:
        number = 0
        while True:
            number += 1
            began_s = trio.current_time()
            caller.write(f"peace {number}")
            with trio.fail_after(20):
                await caller.wait_for(
                    Transcript, lambda m, n=number: m.role == "agent" and m.text.endswith(f" {n}")
                )
            worst_s.append(trio.current_time() - began_s)
            await trio.sleep(1)


def fuzz_codec(dice: random.Random, count: int, texts: Sequence[str]) -> Counter[str]:
    """Give odd messages to the codec of either side.

    Raises:
        Exception: What the codec raised besides ``ProtocolViolationError``.
    """
    found: Counter[str] = Counter()
    theirs = [json.loads(text) for text in texts] or [{"type": "state", "state": "idle"}]
    for text in texts:
        decode_server(text)  # what our server sends our client understands
    for number in range(count):
        bases, decode = ((MESSAGES, decode_client), (theirs, decode_server))[number % 2]
        data: str | bytes = odd_json(dice, dice.choice(bases))
        if dice.randrange(20) == 0:
            data = dice.randbytes(dice.randrange(8000))
        try:
            decode(data)
            found["understood"] += 1
        except ProtocolViolationError as violation:
            found[violation.code] += 1
    return found


def resident_bytes() -> int:
    """Return how large this process is."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def at_rest(calls: Any, tasks: int) -> int:
    """Return how many tasks live once no call is open, or the time for that is over."""
    with trio.move_on_after(30):
        while calls() or living_tasks() > tasks:  # noqa: ASYNC110  # it tells nobody of them
            await trio.sleep(0.05)
    return living_tasks()


async def fuzz(frames: int, seed: int, failures: list[str]) -> bool:
    """Run it all; return whether everything held."""
    dice = random.Random(seed)
    async with open_server(
        App(answer, speech=PlainVoice(silence)), port=0, limits=LIMITS
    ) as server:
        tasks = living_tasks()
        rests, sizes, slowest = [], [], [0.0]
        sent: Counter[str] = Counter()
        for share in (0.1, 0.9):  # after the first part everything is loaded that ever is
            run = Fuzz(server.port, int(frames * share), dice)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(peaceful_caller, server.url, slowest)
                await run.run()
                nursery.cancel_scope.cancel()
            sent += run.sent
            rests.append(await at_rest(lambda: server.calls, tasks))
            sizes.append(resident_bytes())
            descriptors = len(os.listdir("/proc/self/fd"))
            print(f"{dict(sent)}: {rests[-1]} tasks, {descriptors} descriptors, "
                  f"{sizes[-1] / 1e6:.1f} MB", flush=True)  # fmt: skip
        print(
            f"errors told: {dict(server.metrics.errors)}, refused: {dict(server.metrics.rejected)}"
        )
    codec = fuzz_codec(dice, frames, run.texts)
    print(f"codec: {dict(codec)}")
    print(f"callers in peace: {len(slowest) - 1} answers, the slowest after {max(slowest):.2f} s")
    growth = sizes[1] - sizes[0]
    print(f"grew by {growth / 1e6:.1f} MB, {rests[1] - tasks} tasks left, {len(failures)} failures")
    return not failures and rests[1] == tasks and growth < GROWTH_BYTES and len(slowest) > 1


def main(argv: Sequence[str] | None = None) -> int:
    """Fuzz, print the figures, and return 1 if anything did not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzzing", description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    options = parser.parse_args(argv)
    failures: list[str] = []

    def note(logger: object, method: str, event: structlog.typing.EventDict) -> Any:
        if method in ("error", "exception", "critical") or event.get("exc_info"):
            failures.append(str(event.get("event")))
            return event
        raise structlog.DropEvent

    structlog.configure(
        processors=[
            note,
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stdout),
    )
    print(f"seed {options.seed}", flush=True)
    return 0 if trio.run(fuzz, options.frames, options.seed, failures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
