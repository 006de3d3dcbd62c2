"""A listener without sockets, so that a whole server runs in virtual time."""

from __future__ import annotations

import socket
from typing import Any

import trio
import trio.testing


class MemorySocket:
    """Stands for the socket of a listener; `public` gives it an address that others can reach."""

    def __init__(self, *, public: bool = False) -> None:
        self.family = socket.AF_INET if public else socket.AF_UNIX

    def getsockname(self) -> Any:
        return ("203.0.113.7", 80) if self.family == socket.AF_INET else "memory"


class MemoryListener(trio.abc.Listener[Any]):
    """Accepts the connections that `dial` makes, and keeps both ends of each."""

    def __init__(self, *, public: bool = False) -> None:
        self._send, self._receive = trio.open_memory_channel[Any](100)
        self.socket = MemorySocket(public=public)
        self.lines: list[tuple[Any, Any]] = []

    async def accept(self) -> Any:
        return await self._receive.receive()

    async def aclose(self) -> None:
        self._receive.close()
        self._send.close()
        await trio.lowlevel.checkpoint()

    async def dial(self) -> Any:
        mine, yours = trio.testing.memory_stream_pair()
        await self._send.send(yours)
        self.lines.append((mine, yours))
        return mine
