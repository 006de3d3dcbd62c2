"""A peer that speaks in raw frames, and both ends of ours to speak to."""

import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from bargein.websocket import ConnectionClosedError, WebSocket, accept, open_websocket, using

HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)
KEY = b"\x37\xfa\x21\x3d"


class Peer:
    """The other end, which may send what the protocol forbids."""

    def __init__(self, stream: Any, *, masks: bool) -> None:
        self.stream = stream
        self.masks = masks
        self._reader = StreamReader()

    def frame(self, opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0) -> bytes:
        """Return the bytes of a frame."""
        head = bytes([0x80 * fin | rsv << 4 | opcode])
        mask = 0x80 * self.masks
        if len(payload) < 126:
            head += bytes([mask | len(payload)])
        elif len(payload) < 65536:
            head += bytes([mask | 126]) + struct.pack("!H", len(payload))
        else:
            head += bytes([mask | 127]) + struct.pack("!Q", len(payload))
        if not self.masks:
            return head + payload
        masked = bytes(byte ^ KEY[n % 4] for n, byte in enumerate(payload))
        return head + KEY + masked

    async def send(self, data: bytes, chop: int = 0) -> None:
        """Send bytes, all at once or some at a time."""
        size = chop or max(1, len(data))
        for at in range(0, len(data), size):
            try:
                await self.stream.send_all(data[at : at + size])
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return  # it may have had enough
            await trio.lowlevel.checkpoint()

    async def receive(self) -> tuple[int, bytes] | None:
        """Return opcode and payload of the next frame; None at the end of the stream."""
        parser = Frame.parse(self._reader.read_exact, mask=not self.masks)
        while True:
            try:
                next(parser)
            except StopIteration as parsed:
                frame = parsed.value
                assert frame.fin
                if frame.opcode is Opcode.CLOSE and not self.masks:
                    await self.stream.send_eof()  # it is the server that closes the stream
                return int(frame.opcode), bytes(frame.data)
            except EOFError:
                return None
            try:
                data = await self.stream.receive_some()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            if data:
                self._reader.feed_data(data)
            else:
                self._reader.feed_eof()

    async def rest(self) -> list[tuple[int, bytes]]:
        """Return all frames up to the end of the stream."""
        frames = []
        while (frame := await self.receive()) is not None:
            frames.append(frame)
        return frames


async def echo(websocket: WebSocket) -> None:
    """Send back what comes."""
    try:
        while True:
            await websocket.send(await websocket.receive())
    except ConnectionClosedError:
        pass


Handler = Callable[[WebSocket], Awaitable[None]]


@asynccontextmanager
async def _facing(
    role: str, handler: Handler = echo, *, max_waiting_bytes: int = 1_000_000, **options: Any
) -> AsyncIterator[Peer]:
    mine, yours = trio.testing.memory_stream_pair()

    async def serve() -> None:
        opened = await accept(yours, lambda request: None, **options)
        assert opened is not None
        async with using(opened[1], max_waiting_bytes=max_waiting_bytes) as websocket:
            await handler(websocket)

    async def call() -> None:
        async with open_websocket(
            "ws://localhost/", stream=yours, max_waiting_bytes=max_waiting_bytes, **options
        ) as websocket:
            await handler(websocket)

    async with trio.open_nursery() as nursery:
        if role == "server":
            nursery.start_soon(serve)
            await mine.send_all(HANDSHAKE)
            await _head(mine)
            yield Peer(mine, masks=True)
        else:
            nursery.start_soon(call)
            head = (await _head(mine)).decode()
            key = next(
                line[19:] for line in head.split("\r\n") if line.startswith("Sec-WebSocket-Key")
            )
            from websockets.utils import accept_key

            await mine.send_all(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Accept: " + accept_key(key).encode() + b"\r\n\r\n"
            )
            yield Peer(mine, masks=False)
        await mine.aclose()


async def _head(stream: Any) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += await stream.receive_some(1)
    return head


Facing = Callable[..., AbstractAsyncContextManager[Peer]]


@pytest.fixture
def facing() -> Facing:
    """Face an echo (or another handler) of ours, as ``server`` or ``client``, with a raw peer."""
    return _facing


__all__ = ["Facing", "Handler", "Opcode", "Peer"]
