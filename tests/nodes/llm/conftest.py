"""A chat endpoint on loopback that does what a test tells it to."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass
class Exchange:
    """One request, and the means to answer it as badly as one likes."""

    stream: trio.SocketStream
    head: str
    body: dict[str, Any]

    async def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        await self.stream.send_all(data)

    async def begin(self) -> None:
        """Send the head of an event stream."""
        await self.raw(HEAD)

    async def part(self, data: bytes) -> None:
        """Send one HTTP chunk."""
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def event(self, value: object) -> None:
        """Send one event with this value as JSON."""
        await self.part(b"data: " + json.dumps(value).encode() + b"\n\n")

    async def text(self, text: str) -> None:
        """Send one token."""
        await self.event({"choices": [{"index": 0, "delta": {"content": text}}]})

    async def finish(self, reason: str = "stop") -> None:
        """Send the reason, the usage and the end."""
        await self.event({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        await self.event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}})
        await self.part(b"data: [DONE]\n\n")
        await self.raw(b"0\r\n\r\n")

    async def answer(self, *texts: str) -> None:
        """Send a whole answer."""
        await self.begin()
        for text in texts:
            await self.text(text)
        await self.finish()

    async def refuse(self, status: str, body: bytes = b"", headers: str = "") -> None:
        """Send an answer that is not an event stream."""
        head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{headers}\r\n"
        await self.raw(head.encode() + body)

    async def until_eof(self) -> None:
        """Wait until the client closes its side; its reset counts as well."""
        try:
            while await self.stream.receive_some():
                pass
        except trio.BrokenResourceError:
            pass


@dataclass
class ChatServer:
    """Runs `script` for each request."""

    port: int = 0
    script: Callable[[Exchange], Awaitable[None]] | None = None
    requests: list[Exchange] = field(default_factory=list)
    open_connections: int = 0
    connections: int = 0

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self.port}/v1"

    async def all_closed(self) -> None:
        """Wait until no connection is left."""
        while self.open_connections:  # noqa: ASYNC110 (seen by a test only)
            await trio.sleep(0.001)

    async def serve(self, stream: trio.SocketStream) -> None:
        """Answer the requests of one connection."""
        self.connections += 1
        self.open_connections += 1
        try:
            async with stream:
                buffer = b""
                while True:
                    while b"\r\n\r\n" not in buffer:
                        if not (data := await stream.receive_some()):
                            return
                        buffer += data
                    head, buffer = buffer.split(b"\r\n\r\n", 1)
                    text = head.decode()
                    lengths = [
                        int(line.split(":")[1])
                        for line in text.lower().split("\r\n")
                        if line.startswith("content-length")
                    ]
                    size = sum(lengths)
                    while len(buffer) < size:
                        buffer += await stream.receive_some()
                    body, buffer = buffer[:size], buffer[size:]
                    exchange = Exchange(stream, text, json.loads(body) if body else {})
                    self.requests.append(exchange)
                    assert self.script is not None
                    await self.script(exchange)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass  # the client, or the script, closed it
        finally:
            self.open_connections -= 1


@pytest.fixture
async def server(nursery: trio.Nursery) -> ChatServer:
    """A server that runs until the end of the test."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    chat = ChatServer(port=listeners[0].socket.getsockname()[1])
    nursery.start_soon(trio.serve_listeners, chat.serve, listeners)
    return chat
