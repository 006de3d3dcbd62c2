"""Servers, on real sockets, that keep a caller in Python waiting or fill its memory."""

from __future__ import annotations

import base64
import gc
import hashlib
import re
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio

from bargein import App, Call
from bargein.client import Hello, open_caller
from bargein.protocol import encode
from bargein.server import open_server
from tests.living import living_tasks

pytestmark = pytest.mark.proof

Line = trio.SocketStream
Attack = Callable[[Line], Awaitable[None]]

GROWTH_BYTES = 120_000_000
"""How much larger the process may be after a message of a gigabyte that it did not read."""

HELLO_S = 10.0
"""How long a caller waits for the greeting."""


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, size: int | None = None) -> bytes:
    """Return a server's frame, whose head may announce more than its payload."""
    size = len(payload) if size is None else size
    head = bytes([0x80 * fin | opcode])
    if size < 126:
        return head + bytes([size]) + payload
    if size < 1 << 16:
        return head + bytes([126]) + struct.pack("!H", size) + payload
    return head + bytes([127]) + struct.pack("!Q", size) + payload


async def shake_hands(line: Line) -> None:
    """Accept the WebSocket of a client."""
    head = b""
    while b"\r\n\r\n" not in head:
        head += await line.receive_some()
    found = re.search(rb"(?i)sec-websocket-key: *(\S+)", head)
    assert found is not None
    magic = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(found[1] + magic).digest())
    await line.send_all(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )


@asynccontextmanager
async def serving(attack: Attack) -> AsyncIterator[str]:
    """Serve an attack to everybody who connects, and yield the URL."""

    async def handle(line: Line) -> None:
        try:
            await attack(line)
            await trio.sleep(60)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, handle, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        yield f"ws://127.0.0.1:{port}/ws"
        nursery.cancel_scope.cancel()


async def _a_greeting_byte_by_byte(line: Line) -> None:
    await shake_hands(line)
    await line.send_all(frame(1, b'{"type":"hello"', size=60_000))
    while True:
        await line.send_all(b" ")
        await trio.sleep(0.1)


async def _a_greeting_in_endless_pieces(line: Line) -> None:
    await shake_hands(line)
    await line.send_all(frame(1, b'{"type":"hello"', fin=False))
    while True:
        await line.send_all(frame(0, b" ", fin=False))
        await trio.sleep(0.05)


async def _pings_instead_of_a_greeting(line: Line) -> None:
    await shake_hands(line)
    while True:
        await line.send_all(frame(9, b"p") * 100)
        await trio.sleep(0.05)


async def _silence(line: Line) -> None:
    await shake_hands(line)


async def _headers_without_end(line: Line) -> None:
    await line.receive_some()
    await line.send_all(b"HTTP/1.1 101 Switching Protocols\r\n")
    while True:
        await line.send_all(b"X: y\r\n")
        await trio.sleep(0.5)


async def _no_answer(line: Line) -> None:
    await line.receive_some()


KEEP_WAITING = [
    _a_greeting_byte_by_byte, _a_greeting_in_endless_pieces, _pings_instead_of_a_greeting,
    _silence, _headers_without_end, _no_answer,
]  # fmt: skip


async def test_no_server_keeps_a_caller_waiting_for_its_greeting():
    """Whatever it sends instead, `open_caller()` gives up within ten seconds, and leaves no task.

    All attacks at once, because each takes its ten seconds.
    """
    took_s: dict[str, float] = {}
    tasks = living_tasks()

    async def call(attack: Attack) -> None:
        async with serving(attack) as url:
            began_s = trio.current_time()
            with trio.move_on_after(4 * HELLO_S):
                with pytest.raises(OSError):
                    async with open_caller(url, mode="text"):
                        pass
            took_s[attack.__name__] = trio.current_time() - began_s

    async with trio.open_nursery() as nursery:
        for attack in KEEP_WAITING:
            nursery.start_soon(call, attack)
    assert len(took_s) == len(KEEP_WAITING)
    late = {name: took for name, took in took_s.items() if took > 2.5 * HELLO_S}
    assert not late
    assert living_tasks() == tasks


def greeting() -> bytes:
    """Return the greeting of a server."""
    text = encode(Hello(call="c1", agent="a", audio=False))
    return text.encode() if isinstance(text, str) else text


async def _one_frame_of_a_gigabyte(line: Line) -> None:
    await line.send_all(frame(1, b'"', size=1 << 30))
    for _ in range(1024):
        await line.send_all(b"x" * (1 << 20))


async def _one_frame_of_exabytes(line: Line) -> None:
    await line.send_all(frame(1, b'"', size=(1 << 63) - 1))
    await trio.sleep(60)


async def _a_gigabyte_in_pieces(line: Line) -> None:
    await line.send_all(frame(1, b'"', fin=False))
    for _ in range(1024):
        await line.send_all(frame(0, b"x" * (1 << 20), fin=False))


async def _a_gigabyte_of_sound(line: Line) -> None:
    await line.send_all(frame(2, b"\x01", size=1 << 30))
    for _ in range(1024):
        await line.send_all(bytes(1 << 20))


HUGE = [
    _one_frame_of_a_gigabyte, _one_frame_of_exabytes, _a_gigabyte_in_pieces, _a_gigabyte_of_sound,
]  # fmt: skip


def resident_bytes() -> int:
    """Return how large this process is."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("attack", HUGE, ids=lambda attack: attack.__name__.strip("_"))
async def test_a_huge_message_ends_the_call(attack: Attack):
    """It is not read into memory, and the caller does not call again to get it once more."""
    lines = 0

    async def greet_and_attack(line: Line) -> None:
        nonlocal lines
        lines += 1
        await shake_hands(line)
        await line.send_all(frame(1, greeting()))
        await attack(line)

    before = resident_bytes()
    async with serving(greet_and_attack) as url:
        with trio.fail_after(60):
            async with open_caller(url, mode="text") as caller:
                await caller.ended.wait()
    assert caller.reason == "message_too_big"
    assert lines == 1
    assert resident_bytes() - before < GROWTH_BYTES


async def test_greetings_without_end_fill_no_memory():
    """A server that greets again and again is kept by bytes, and can be left at any time."""
    sent = 0

    async def greet(line: Line) -> None:
        nonlocal sent
        await shake_hands(line)
        while True:
            await line.send_all(frame(1, greeting()) * 100)
            sent += 100

    before = resident_bytes()
    async with serving(greet) as url:
        with trio.move_on_after(30) as patience:
            async with open_caller(url, mode="text") as caller:
                with trio.move_on_after(5):
                    await caller.ended.wait()
        assert not patience.cancelled_caught
    assert sent > 100
    assert resident_bytes() - before < GROWTH_BYTES


HEADS: dict[str, bytes] = {
    "two_lengths": b"Content-Length: 0\r\nContent-Length: 30\r\n",
    "two_equal_lengths": b"Content-Length: 30\r\nContent-Length: 30\r\n",
    "a_list_of_lengths": b"Content-Length: 30, 30\r\n",
    "length_and_coding": b"Content-Length: 30\r\nTransfer-Encoding: chunked\r\n",
    "coding_and_length": b"transfer-encoding: chunked\r\nCONTENT-LENGTH: 30\r\n",
    "two_codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
    "another_coding": b"Transfer-Encoding: gzip, chunked\r\n",
    "hidden_coding": b"Content-Length: 30\r\nTransfer-Encoding:\tchunked\r\n",
}
"""Heads that two servers in a row may read as requests of different lengths."""


@pytest.mark.parametrize("path", ["/", "/metrics", "/ws?mode=text"])
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_head_that_can_be_read_in_two_ways_is_refused(method: str, path: str):
    """Each gets status 400 and its connection closed; what follows is no second request."""

    async def answer(call: Call) -> None:
        await call.wait_ended()

    async with open_server(App(answer), port=0) as server:
        for name, headers in HEADS.items():
            async with await trio.open_tcp_stream("127.0.0.1", server.port) as line:
                await line.send_all(
                    f"{method} {path} HTTP/1.1\r\nHost: localhost\r\n".encode() + headers + b"\r\n"
                    b"0\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
                )
                got = b""
                with trio.fail_after(30):
                    while more := await line.receive_some():
                        got += more
            assert got.startswith(b"HTTP/1.1 400 "), (name, got[:100])
            assert got.count(b"HTTP/1.1 ") == 1, name
