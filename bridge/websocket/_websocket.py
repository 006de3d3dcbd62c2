"""A WebSocket with ``send`` and ``receive``: for clients, and for small servers.

Rule 1. ``send`` queues whole messages, and waits while too much is queued; if it is cancelled, the
message is either queued or not.
Rule 2. ``receive`` returns messages in order; unread messages stop the reading at a limit.
Rule 3. Leaving the block closes the connection properly, in bounded time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import NoReturn, Protocol, final

import trio

from bargein.routes import BargeinError
from bargein.routes.service_nursery import open_service_nursery

from ._connection import NORMAL_CLOSE, Connection, Data, Source

MAX_WAITING_BYTES = 1_048_576
"""How many bytes may wait on either side by default: 20 s of an agent's voice at 24 kHz."""

MESSAGE_BYTES = 64
"""How much an unread message counts for besides its own bytes: about what CPython takes for it."""

CHECK_S = 1.0
"""How often a connection is checked, in seconds; it may end this much later than its limits say."""


class ConnectionClosedError(BargeinError, ConnectionError):
    """The WebSocket is closed, by either side.

    Attributes:
        code: The code of the peer's close frame; 1006 without one (RFC 6455, 7.1.5).
        reason: The reason in the peer's close frame, or why this side cut the line; may be empty.
    """

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"the WebSocket is closed: {code}" + (f", {reason}" if reason else ""))
        self.code = code
        self.reason = reason


@final
class Outgoing:
    """A plain queue of messages: the default source of a ``WebSocket``."""

    def __init__(self) -> None:
        self._on_change: Callable[[], None] = lambda: None
        self.is_closed = False
        self.waiting_bytes = 0
        self.room = trio.Event()
        self._queue: deque[Data] = deque()

    def enqueue(self, data: Data) -> None:
        """Queue a message."""
        self._queue.append(data)
        self.waiting_bytes += len(data)
        self._on_change()

    def notify(self, on_change: Callable[[], None]) -> None:
        """Call ``on_change`` whenever a message is added, or none will be, from now on."""
        self._on_change = on_change

    def close(self) -> None:
        """Add no more messages; the connection closes once all are sent."""
        self.is_closed = True
        self._on_change()

    def next(self) -> Data | None:
        """Take the oldest message; ``None`` if none waits."""
        if not self._queue:
            return None
        data = self._queue.popleft()
        self.waiting_bytes -= len(data)
        self.room.set()
        return data


@final
class WebSocket:
    """An open WebSocket, made by ``open_websocket`` or ``using``."""

    def __init__(self, connection: Connection, source: Source, max_waiting_bytes: int) -> None:
        """Wrap a connection that is run elsewhere."""
        self.connection = connection
        self._source = source
        self._max_bytes = max_waiting_bytes
        self._inbox: deque[Data] = deque()
        self._inbox_bytes = 0
        self._changed = trio.Event()
        self._received_one = trio.Event()
        self._is_closing = False
        self._is_over = False

    async def send(self, data: Data) -> None:
        """Queue a message behind all waiting ones.

        Cancelling it is safe: the message is sent whole or not at all.

        Args:
            data: Text, or bytes for a binary message.

        Raises:
            ConnectionClosedError: The connection is closing or closed.
        """
        source = self._source
        assert isinstance(source, Outgoing)  # with another source, messages are put there
        while source.waiting_bytes > self._max_bytes and self.connection.is_open:
            if source.room.is_set():  # a new event would strand those who wait for this one
                source.room = trio.Event()
            await source.room.wait()
        if self._is_over or not self.connection.is_open:
            raise self._closed()
        source.enqueue(data)
        await trio.lowlevel.checkpoint_if_cancelled()

    async def receive(self) -> Data:
        """Return the next message; wait for it if necessary.

        Cancelling it is safe: nothing is lost.

        Raises:
            ConnectionClosedError: The connection is closed, and every message was returned.
        """
        await trio.lowlevel.checkpoint()
        while not self._inbox:
            if self._is_over:
                raise self._closed()
            self._changed = trio.Event()
            await self._changed.wait()
        data = self._inbox.popleft()
        self._inbox_bytes -= len(data) + MESSAGE_BYTES
        self._received_one.set()
        return data

    def close(self, code: int = NORMAL_CLOSE, reason: str = "") -> None:
        """Close the connection once everything queued is sent; ``receive()`` works until then.

        The first call counts.

        Args:
            code: The code of the close frame, as RFC 6455, section 7.4, allows.
            reason: At most 123 bytes of UTF-8.
        """
        if self._is_closing:
            return
        self._is_closing = True
        self.connection.end_with(code, reason)
        if isinstance(self._source, Outgoing):
            self._source.close()

    def _closed(self) -> ConnectionClosedError:
        connection = self.connection
        return ConnectionClosedError(
            connection.close_code, connection.close_reason or connection.lost_by or ""
        )

    # --- for the task that runs it --------------------------------------------------------------

    async def run(self) -> None:
        """Carry messages until the connection is over."""
        try:
            await self.connection.run(self._source, self._receive_message, self._may_read)
        finally:
            self._is_over = True
            self._changed.set()
            if isinstance(self._source, Outgoing):
                self._source.room.set()

    def _receive_message(self, data: Data) -> None:
        self._inbox.append(data)
        self._inbox_bytes += len(data) + MESSAGE_BYTES
        self._changed.set()

    async def _may_read(self) -> None:
        while self._inbox_bytes > self._max_bytes:
            self._received_one = trio.Event()
            await self._received_one.wait()


@asynccontextmanager
async def using(
    connection: Connection,
    source: Source | None = None,
    *,
    max_waiting_bytes: int = MAX_WAITING_BYTES,
) -> AsyncIterator[WebSocket]:
    """Run a connection while the block runs; leaving the block closes it properly.

    Leaving takes at most as long as the closing handshake, even if it is cancelled.

    Args:
        connection: An open connection that does not run yet.
        source: The messages to send; ``None`` sends those given to ``WebSocket.send()``.
        max_waiting_bytes: How many bytes may wait to be sent before ``send()`` waits, and how many
            received bytes may wait before reading stops.
    """
    websocket = WebSocket(connection, source or Outgoing(), max_waiting_bytes)
    over = trio.Event()
    async with open_service_nursery("the WebSocket is closed") as nursery:
        nursery.start_soon(_serve, websocket, over)
        try:
            yield websocket
        finally:
            websocket.close()
            with trio.CancelScope(shield=True):  # no deadline: both waits have their own
                with trio.move_on_after(connection.close_s):
                    await over.wait()
                connection.cut("left")
                await over.wait()


async def _serve(websocket: WebSocket, over: trio.Event) -> None:
    # Shielded, so that a cancelled owner can still close properly; it ends with the block.
    with trio.CancelScope(shield=True):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(check_all, lambda: (websocket.connection,))
            await websocket.run()
            nursery.cancel_scope.cancel(reason="the connection is over")
    # In the last step of this task, so that whoever waits for it finds the nursery empty.
    over.set()


class Checkable(Protocol):
    """Something that must be checked from time to time."""

    def check(self, now_s: float) -> None:
        """See ``Connection.check``."""


async def check_all(connections: Callable[[], Iterable[Checkable]]) -> NoReturn:
    """Check connections about once a second until cancelled; see ``Connection.check()``.

    Args:
        connections: Returns the current connections.
    """
    while True:
        await trio.sleep(CHECK_S)
        now_s = trio.current_time()
        for connection in tuple(connections()):
            connection.check(now_s)
