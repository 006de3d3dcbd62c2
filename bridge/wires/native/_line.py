"""One connection that carries a call.

Rule 1. The line ends when its peer is lost, when everything is sent, or when another line takes
over.
Rule 2. However it ends, the connection is closed when ``run`` returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, final

import trio

from ...protocol._outbox import Outbox
from ...websocket import Connection, Data
from .._limits import Limits

Fate = Literal["lost", "left", "said"]
"""How a line ended: the peer was lost or went away; it closed the line for good; or everything was
sent, and the peer confirmed that."""

NORMAL_CLOSE = 1000
"""Close code of a client that left for good; 1001 means that a browser's page goes away, which may
be reloaded and come back (RFC 6455, 7.4.1)."""

NO_STATUS = 1005
"""Close code of a frame without a code, which may answer ours (RFC 6455, 5.5.1)."""

TAKEN_OVER = 4001
"""Close code of a line whose call continues on another one (private use, RFC 6455, 7.4.2)."""

REFUSED = 1008
"""Close code of a line whose call was refused (RFC 6455, 7.4.1: policy violation)."""


@final
class Line:
    """A connection with its outbox.

    Attributes:
        connection: The WebSocket.
        outbox: Where messages for it are queued.
        over: Set once ``run`` has returned and its caller has dealt with that.
    """

    __slots__ = (
        "_heard_at_s", "_on_data", "_on_silent", "_ready", "_silence_s", "connection", "outbox",
        "over",
    )  # fmt: skip

    def __init__(
        self, connection: Connection, limits: Limits, on_overflow: Callable[[Line], None]
    ) -> None:
        """Keep the connection; nothing happens before ``run``.

        Args:
            connection: Open.
            limits: The server's.
            on_overflow: Called with this line when the peer reads too slowly.
        """
        self.connection = connection
        self.outbox = Outbox(
            max_bytes=limits.max_waiting_bytes, on_broken=lambda: on_overflow(self)
        )
        self.over = trio.Event()
        self._silence_s = math.inf if limits.silence_s is None else limits.silence_s
        self._heard_at_s = trio.current_time()
        self._on_data: Callable[[Data], None] = lambda data: None
        self._ready: trio.Event | None = None
        self._on_silent: Callable[[], None] = lambda: None

    async def run(
        self, take: Callable[[Data], None], ready: trio.Event, on_silent: Callable[[], None]
    ) -> Fate:
        """Carry messages until the line is over.

        Args:
            take: Called with each message received; must neither wait nor raise.
            ready: Messages are read once this is set.
            on_silent: Called when the peer has sent nothing for too long; the line continues.
        """
        self._on_data, self._ready, self._on_silent = take, ready, on_silent
        await self.connection.run(self.outbox, self._hear, self._may_read)
        code = self.connection.close_code
        if self.connection.close_sent == NORMAL_CLOSE and self.outbox.is_closed:
            # Another code does not answer ours: the peer was going away, and has read nothing.
            return "said" if code in (NORMAL_CLOSE, NO_STATUS) else "lost"
        has_left = self.connection.was_closed_by_peer
        return "left" if has_left and code == NORMAL_CLOSE else "lost"

    def _hear(self, data: Data) -> None:
        self._heard_at_s = trio.current_time()
        self._on_data(data)

    async def _may_read(self) -> None:
        if self._ready is not None:
            await self._ready.wait()
            self._ready = None

    def check(self, now_s: float) -> None:
        """Check whether the peer is still there; call this about once a second.

        Args:
            now_s: trio's clock.
        """
        self.connection.check(now_s)
        if now_s - self._heard_at_s >= self._silence_s:
            self._heard_at_s = math.inf  # report it once
            self._on_silent()

    def note_over(self) -> None:
        """Record that ``run`` has returned and its caller has dealt with that."""
        self.over.set()

    def cut(self) -> None:
        """Break the connection now."""
        self.connection.cut()

    def give_up(self, code: int = TAKEN_OVER, reason: str = "another line has taken over") -> None:
        """Close the connection once its outbox is done."""
        self.connection.end_with(code, reason)
