"""The baseline for providers: one loop on the Sans-I/O protocol."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio
from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.uri import parse_uri

_RECEIVE_BYTES = 65_536


class BareSocket:
    """A WebSocket to a vendor without any safety measures."""

    def __init__(self, stream: trio.SocketStream, protocol: ClientProtocol) -> None:
        self._stream = stream
        self._protocol = protocol

    async def send(self, data: bytes | str) -> None:
        """Send a message."""
        if isinstance(data, str):
            self._protocol.send_text(data.encode())
        else:
            self._protocol.send_binary(data)
        await self.flush()

    async def flush(self) -> None:
        for piece in self._protocol.data_to_send():
            if piece:
                await self._stream.send_all(piece)

    async def messages(self) -> AsyncIterator[dict[str, Any]]:
        """Yield the vendor's messages for ever."""
        while True:
            self._protocol.receive_data(await self._stream.receive_some(_RECEIVE_BYTES))
            for event in self._protocol.events_received():
                if isinstance(event, Frame) and event.opcode is Opcode.TEXT:
                    yield json.loads(event.data)


@asynccontextmanager
async def open_bare(url: str, **headers: str) -> AsyncIterator[BareSocket]:
    """Open a socket while the block runs.

    Args:
        url: The address.
        **headers: The headers that authenticate it.
    """
    uri = parse_uri(url)
    protocol = ClientProtocol(uri)
    async with await trio.open_tcp_stream(uri.host, uri.port) as stream:
        socket = BareSocket(stream, protocol)
        request = protocol.connect()
        request.headers.update(headers)
        protocol.send_request(request)
        await socket.flush()
        while not protocol.events_received():
            protocol.receive_data(await stream.receive_some(_RECEIVE_BYTES))
        yield socket
