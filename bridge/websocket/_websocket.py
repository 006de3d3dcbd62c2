"""A WebSocket with ``send`` and ``receive``: for clients, and for small servers.

Rule 1. ``send`` queues whole messages, and waits while too much is queued; if it is cancelled, the
message is either queued or not.
Rule 2. ``receive`` returns messages in order; unread messages stop the reading at a limit.
Rule 3. Leaving the block closes the connection properly, in bounded time.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import NoReturn, Protocol, final

import trio

from bargein.routes import BargeinError
from bargein.routes.service_nursery import open_service_nursery

from .._message_queue import MessageQueue
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
class WebSocket:
    """An open WebSocket, made by ``open_websocket`` or ``using``."""

    def __init__(self, connection: Connection, source: Source, max_waiting_bytes: int) -> None:
        """Wrap a connection that is run elsewhere."""
        self.connection = connection
        self._source = source
        self._inbox: MessageQueue[Data] = MessageQueue(max_waiting_bytes, MESSAGE_BYTES)
        self._is_closing = False

    async def send(self, data: Data) -> None:
        """Queue a message behind all waiting ones.

        Cancelling it is safe: the message is sent whole or not at all.

        Args:
            data: Text, or bytes for a binary message.

        Raises:
            ConnectionClosedError: The connection is closing or closed.
        """
        source = self._source
        assert isinstance(source, MessageQueue)  # with another source, messages are put there
        await source.room()
        if source.is_closed or not self.connection.is_open:
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
        await self._inbox.more()
        data = self._inbox.next()
        if data is None:
            raise self._closed()
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
        if isinstance(self._source, MessageQueue):
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
            await self.connection.run(self._source, self._inbox.enqueue, self._inbox.room)
        finally:
            self._inbox.close()
            if isinstance(self._source, MessageQueue):
                self._source.close()


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
    websocket = WebSocket(
        connection, source or MessageQueue[Data](max_waiting_bytes), max_waiting_bytes
    )
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
    """Check connections about once a second until cancelled; see ``Connection.check()``."""
    while True:
        await trio.sleep(CHECK_S)
        now_s = trio.current_time()
        for connection in tuple(connections()):
            connection.check(now_s)
