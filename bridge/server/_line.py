"""One connection that carries a call: its reader and its writer.

Rule 1. The line ends when its peer is lost, when all is said, or when another line has taken over.
Rule 2. However it ends, the connection is closed when ``run`` returns, or torn if that takes long.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, final

import trio
from websockets.exceptions import ConnectionClosed

from ._limits import Limits
from ._socket import Data, Outbox, SafeServer

Fate = Literal["lost", "left", "said"]
"""How a line ended: the peer is lost, or has closed it; or all was said that was to be said, and
the peer knows that."""

NORMAL_CLOSE = 1000
"""Close code of a client that has left; with 1001 a browser's page goes away, which may be loaded
anew and come back (RFC 6455, 7.4.1)."""

TAKEN_OVER = 4001
"""Close code of a line whose call goes on over another one (private use, RFC 6455, 7.4.2)."""

REFUSED = 1008
"""Close code of a line whose call was refused (RFC 6455, 7.4.1: policy violation)."""


class _Nowhere:
    """What an outbox between two lines has for a connection; nothing is ever sent to it."""

    async def send(self, message: Data) -> None:
        raise AssertionError("an outbox between two lines is not run")


NOWHERE = _Nowhere()


@final
class Line:
    """A connection with its outbox.

    Attributes:
        connection: The WebSocket.
        outbox: Where messages for it are queued.
        over: Set by whoever ran it, once ``run`` has returned and that was taken note of.
    """

    def __init__(
        self, connection: SafeServer, limits: Limits, on_broken: Callable[[Line, str], None]
    ) -> None:
        """Keep the connection; nothing happens before ``run``.

        Args:
            connection: Open.
            limits: Of the server.
            on_broken: Told of this line and ``overflow``, ``stalled`` or ``closed`` when nothing
                can be sent any more.
        """
        self.connection = connection
        self.outbox = Outbox(
            connection,
            max_bytes=limits.max_waiting_bytes,
            stall_s=limits.stall_s,
            on_broken=lambda why: on_broken(self, why),
        )
        self.over = trio.Event()
        self._limits = limits
        self._scope = trio.CancelScope()
        self._close = (NORMAL_CLOSE, "")
        self._fate: Fate = "lost"
        self._closing = False

    async def run(
        self, take: Callable[[Data], None], ready: trio.Event, on_silent: Callable[[], None]
    ) -> Fate:
        """Carry messages until the line is over.

        Args:
            take: Gets each message that comes; must not wait.
            ready: Messages are read from then on.
            on_silent: Called when the peer has sent nothing for too long; the line goes on.
        """
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                await ready.wait()
                await self._read(take, on_silent)
                nursery.cancel_scope.cancel()
        return self._fate

    def cut(self) -> None:
        """Tear the connection, now."""
        self._scope.cancel(reason="the line was cut")

    def give_up(self, code: int = TAKEN_OVER, reason: str = "another line has taken over") -> None:
        """Close the connection once its outbox is done."""
        self._close = (code, reason)

    async def _write(self) -> None:
        await self.outbox.run()
        self._closing = True
        with trio.move_on_after(self._limits.close_s):
            await self.connection.aclose(*self._close)
        if self.connection.protocol.close_rcvd is not None and self._close[0] == NORMAL_CLOSE:
            self._fate = "said"
        self.cut()

    async def _read(self, take: Callable[[Data], None], on_silent: Callable[[], None]) -> None:
        silence_s = math.inf if self._limits.silence_s is None else self._limits.silence_s
        try:
            with trio.move_on_after(silence_s) as patience:
                while True:
                    data = await self.connection.recv()
                    patience.deadline = trio.current_time() + silence_s
                    take(data)
        except ConnectionClosed as closed:
            if self._closing:
                await trio.sleep_forever()  # whoever closes it says what that means
            if closed.rcvd_then_sent and _has_left(closed):
                self._fate = "left"
        if patience.cancelled_caught:
            on_silent()
            await trio.sleep_forever()  # what there is to say about it is said before


def _has_left(closed: ConnectionClosed) -> bool:
    return closed.rcvd is not None and closed.rcvd.code == NORMAL_CLOSE
