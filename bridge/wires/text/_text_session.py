"""One call over one socket of a far side that hears and speaks, from first message to last."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import trio

from bargein.routes.logs import get_logger

from ...protocol._outbox import Outbox
from ...websocket import Data
from ...websocket._connection import POLICY_VIOLATION
from .._wire import HostedCall, RefusalCode, RequestRefusedError, WireConnection
from ._text_transport import TextWireTransport

log = get_logger()

TakeFirst = Callable[[Data, Callable[[Data], None]], Callable[[], None]]
"""Takes the first message, and what takes one that is of the call itself; returns what is called
once the call is over; raises ``RequestRefusedError``."""


class TextSession:
    """A call over one socket; a far side that comes back opens another call."""

    __slots__ = ("_connection", "_hosted", "_metrics", "_open", "_outbox", "_over", "_transport")

    def __init__(
        self,
        connection: WireConnection,
        hosted: HostedCall,
        transport: Callable[[Outbox, HostedCall], TextWireTransport],
        *,
        opening: TakeFirst | None = None,
    ) -> None:
        """Keep what the call needs; nothing happens before ``run()``.

        Args:
            connection: The socket.
            hosted: The call, as the port gives it.
            transport: Returns the caller's side.
            opening: Takes the first message, before the call is opened; ``None`` opens it at once.
        """
        self._connection = connection
        self._hosted = hosted
        self._metrics = hosted.metrics
        self._open = opening
        self._over = trio.Event()
        self._outbox = Outbox(max_bytes=hosted.limits.max_waiting_bytes, on_broken=self._overflows)
        self._transport = transport(self._outbox, hosted)

    def counts(self) -> Mapping[str, object]:
        """Return what the log line of the call's end shows."""
        queued = self._outbox.statistics()
        return {
            "messages_out": queued.taken,
            "dropped": queued.dropped,
            "barge_ins": self._transport.barge_ins,
            "refused": sum(self._transport.ignored.values()),
            "ignored": dict(self._transport.ignored),
            "close_code": self._connection.close_code if self._over.is_set() else None,
        }

    async def run(self) -> None:
        """Run the call; return once it is over.

        Cancelling this ends the call without a goodbye.
        """
        release: Callable[[], None] = lambda: None  # noqa: E731
        if self._open is not None:
            try:
                release = self._open(await self._first(), self._transport.receive)
            except RequestRefusedError as refused:
                await self._refuse(refused.code, str(refused))
                return
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._carry)
                end = await self._hosted.run(self._transport, opened=self._transport.opened)
                if end.was_refused:
                    self._connection.end_with(end.close_code, end.code or "")
                for last in () if self._outbox.is_closed else self._transport.goodbye(end):
                    self._outbox.enqueue(last)
                self._outbox.close()
                with trio.move_on_after(self._hosted.limits.close_s):
                    await self._over.wait()
                nursery.cancel_scope.cancel(reason="the call is over")
        finally:
            release()
            self._hosted.forget()

    async def _first(self) -> Data:
        """Return the first message.

        Raises:
            RequestRefusedError: It does not come in time.
        """
        data = None
        with trio.move_on_after(self._hosted.limits.handshake_s):
            data = await self._connection.first()
        if data is None:
            raise RequestRefusedError("bad_message", "no first message came in time")
        return data

    async def _refuse(self, code: RefusalCode, text: str) -> None:
        self._metrics.rejected[code] += 1
        log.warning("carrier_socket_refused", code=code, why=text)
        self._hosted.end(code)
        self._hosted.forget()
        self._connection.end_with(POLICY_VIOLATION, text)
        self._outbox.close()
        with trio.move_on_after(self._hosted.limits.close_s):
            await self._connection.run(self._outbox, lambda data: None)

    async def resume(self, connection: WireConnection) -> None:
        """Continue the call on another connection; return when that is over."""
        limit = self._hosted.limits.max_waiting_bytes
        self._connection = connection
        self._outbox = Outbox(max_bytes=limit, on_broken=self._overflows)
        self._over = trio.Event()
        self._transport.continue_on(self._outbox)
        await self._carry()

    async def _carry(self) -> None:
        try:
            await self._connection.run(self._outbox, self._transport.receive)
        finally:
            self._over.set()
        self._transport.close()

    def _overflows(self) -> None:
        log.info("client_reads_too_slowly", waiting=self._outbox.statistics().waiting)
        self._connection.end_with(POLICY_VIOLATION, "it reads too slowly")
        self._hosted.end("disconnected")
