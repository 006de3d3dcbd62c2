"""A pair of streams in memory, with buffers as bounded as a socket's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

import trio

ROOM_BYTES = 65_536
"""How many bytes one direction holds before its sender waits; about as many as a new socket."""


@final
class _Pipe:
    """One direction."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.is_ended = False  # nothing more will be sent
        self.is_unread = False  # nobody will receive
        self.changed = trio.Event()

    def change(self) -> None:
        self.changed.set()
        self.changed = trio.Event()


@final
class MemoryStream(trio.abc.HalfCloseableStream):
    """One end of a pair; made by `memory_stream_pair`."""

    def __init__(self, incoming: _Pipe, outgoing: _Pipe) -> None:
        """Keep both directions."""
        self._in = incoming
        self._out = outgoing
        self._is_closed = False
        self._is_sending = trio.Lock()
        self._is_receiving = trio.Lock()

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Send, waiting for room."""
        try:
            self._is_sending.acquire_nowait()
        except trio.WouldBlock:
            raise trio.BusyResourceError("another task is sending") from None
        try:
            await self._send(memoryview(data))
        finally:
            self._is_sending.release()

    async def _send(self, rest: memoryview) -> None:
        await trio.lowlevel.checkpoint()
        while True:
            if self._is_closed or self._out.is_ended:
                raise trio.ClosedResourceError
            if self._out.is_unread:
                raise trio.BrokenResourceError
            room = ROOM_BYTES - len(self._out.data)
            if room > 0 and rest:
                self._out.data += rest[:room]
                rest = rest[room:]
                self._out.change()
            if not rest:
                return
            await self._out.changed.wait()

    async def wait_send_all_might_not_block(self) -> None:
        """Wait until there is room."""
        try:
            self._is_sending.acquire_nowait()
        except trio.WouldBlock:
            raise trio.BusyResourceError("another task is sending") from None
        try:
            await trio.lowlevel.checkpoint()
            while not (self._is_closed or self._out.is_ended or self._out.is_unread):
                if len(self._out.data) < ROOM_BYTES:
                    return
                await self._out.changed.wait()
            if self._is_closed or self._out.is_ended:
                raise trio.ClosedResourceError
        finally:
            self._is_sending.release()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """Return the next bytes; empty at the end."""
        if max_bytes is not None and not isinstance(max_bytes, int):
            raise TypeError(f"max_bytes is {max_bytes!r}; it must be a whole number")
        if max_bytes is not None and max_bytes < 1:
            raise ValueError(f"max_bytes is {max_bytes!r}; it must be 1 or more")
        try:
            self._is_receiving.acquire_nowait()
        except trio.WouldBlock:
            raise trio.BusyResourceError("another task is receiving") from None
        try:
            await trio.lowlevel.checkpoint()
            while True:
                if self._is_closed:
                    raise trio.ClosedResourceError
                if self._in.data:
                    got = bytes(self._in.data[:max_bytes])
                    del self._in.data[: len(got)]
                    self._in.change()
                    return got
                if self._in.is_ended:
                    return b""
                await self._in.changed.wait()
        finally:
            self._is_receiving.release()

    async def send_eof(self) -> None:
        """Declare that nothing more will be sent."""
        if self._is_sending.locked():
            raise trio.BusyResourceError("another task is sending")
        await trio.lowlevel.checkpoint()
        if self._is_closed:
            raise trio.ClosedResourceError
        self._out.is_ended = True
        self._out.change()

    def close(self) -> None:
        """Close both directions."""
        if not self._is_closed:
            self._is_closed = True
            self._out.is_ended = True
            self._in.is_unread = True
            self._in.data.clear()
            self._out.change()
            self._in.change()

    async def aclose(self) -> None:
        """Close both directions."""
        self.close()
        await trio.lowlevel.checkpoint()


def memory_stream_pair() -> tuple[MemoryStream, MemoryStream]:
    """Return both ends of a connection in memory, each direction of which holds 64 KiB."""
    there, back = _Pipe(), _Pipe()
    return MemoryStream(there, back), MemoryStream(back, there)


@final
class MemoryListener(trio.abc.Listener[Any]):
    """Accepts connections in memory: for ``open_server(listeners=)`` of a server without sockets.

    Attributes:
        socket: Itself, whose name says that only this process reaches it.
    """

    def __init__(self, make_pair: Callable[[], tuple[Any, Any]] = memory_stream_pair) -> None:
        """Make it.

        Args:
            make_pair: Makes the two ends of a connection.
        """
        self._make_pair = make_pair
        self._send, self._receive = trio.open_memory_channel[Any](10)
        self.socket = self

    def getsockname(self) -> str:
        """Return its name."""
        return "memory"

    async def accept(self) -> Any:
        """Return the next connection."""
        return await self._receive.receive()

    async def aclose(self) -> None:
        """Accept nothing more."""
        self._receive.close()
        await trio.lowlevel.checkpoint()

    async def dial(self) -> Any:
        """Connect."""
        mine, theirs = self._make_pair()
        await self._send.send(theirs)
        return mine
