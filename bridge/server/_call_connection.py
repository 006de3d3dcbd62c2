"""One connection that carries a call.

Rule 1. The line ends when its peer is lost, when all is said, or when another line has taken over.
Rule 2. However it ends, the connection is closed when ``run`` returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, final

import trio

from ..websocket import Connection, Data
from ._limits import Limits
from ._outbox import Outbox

Fate = Literal["lost", "left", "said"]
"""How a line ended: the peer is lost or goes away, or has closed the line for good; or all was said
that was to be said, and the peer knows that."""

NORMAL_CLOSE = 1000
"""Close code of a client that has left; with 1001 a browser's page goes away, which may be loaded
anew and come back (RFC 6455, 7.4.1)."""

NO_STATUS = 1005
"""Close code of a frame without one, which may answer ours (RFC 6455, 5.5.1)."""

TAKEN_OVER = 4001
"""Close code of a line whose call goes on over another one (private use, RFC 6455, 7.4.2)."""

REFUSED = 1008
"""Close code of a line whose call was refused (RFC 6455, 7.4.1: policy violation)."""


@final
class Line:
    """A connection with its outbox.

    Attributes:
        connection: The WebSocket.
        outbox: Where messages for it are queued.
        over: Set by whoever ran it, once ``run`` has returned and that was taken note of.
    """

    __slots__ = (
        "_heard_at_s", "_on_silent", "_ready", "_silence_s", "_take", "connection", "outbox",
        "over",
    )  # fmt: skip

    def __init__(
        self, connection: Connection, limits: Limits, on_overflow: Callable[[Line], None]
    ) -> None:
        """Keep the connection; nothing happens before ``run``.

        Args:
            connection: Open.
            limits: Of the server.
            on_overflow: Told of this line when the peer reads too slowly for what it is sent.
        """
        self.connection = connection
        self.outbox = Outbox(
            max_bytes=limits.max_waiting_bytes, on_broken=lambda: on_overflow(self)
        )
        self.over = trio.Event()
        self._silence_s = math.inf if limits.silence_s is None else limits.silence_s
        self._heard_at_s = trio.current_time()
        self._take: Callable[[Data], None] = lambda data: None
        self._ready: trio.Event | None = None
        self._on_silent: Callable[[], None] = lambda: None

    async def run(
        self, take: Callable[[Data], None], ready: trio.Event, on_silent: Callable[[], None]
    ) -> Fate:
        """Carry messages until the line is over.

        Args:
            take: Gets each message that comes; must neither wait nor raise.
            ready: Messages are read from then on.
            on_silent: Called when the peer has sent nothing for too long; the line goes on.
        """
        self._take, self._ready, self._on_silent = take, ready, on_silent
        await self.connection.run(self.outbox, self._hear, self._may_read)
        code = self.connection.close_code
        if self.connection.close_sent == NORMAL_CLOSE and self.outbox.is_closed:
            # Another code is no answer to ours: the peer was going away and has read nothing.
            return "said" if code in (NORMAL_CLOSE, NO_STATUS) else "lost"
        has_left = self.connection.was_closed_by_peer
        return "left" if has_left and code == NORMAL_CLOSE else "lost"

    def _hear(self, data: Data) -> None:
        self._heard_at_s = trio.current_time()
        self._take(data)

    async def _may_read(self) -> None:
        if self._ready is not None:
            await self._ready.wait()
            self._ready = None

    def check(self, now_s: float) -> None:
        """Look whether the peer is still there; to be called about once a second.

        Args:
            now_s: trio's clock.
        """
        self.connection.check(now_s)
        if now_s - self._heard_at_s >= self._silence_s:
            self._heard_at_s = math.inf  # told once
            self._on_silent()

    def cut(self) -> None:
        """Tear the connection, now."""
        self.connection.cut()

    def give_up(self, code: int = TAKEN_OVER, reason: str = "another line has taken over") -> None:
        """Close the connection once its outbox is done."""
        self.connection.end_with(code, reason)
