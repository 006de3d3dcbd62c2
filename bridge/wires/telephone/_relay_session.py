"""One call over ConversationRelay, from the carrier's first message to the relay's end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import final

import trio

from bargein.routes.logs import get_logger

from ...protocol._outbox import Outbox
from ...websocket._connection import POLICY_VIOLATION
from .._wire import HostedCall, RefusalCode, RequestRefusedError, WireConnection
from ._call_tokens import AnnouncedCall
from ._relay_codec import Opened, RelayCodec
from ._relay_transport import RelayTransport

log = get_logger()

Redeem = Callable[[Opened], AnnouncedCall]
"""Returns the call whose first message has come; raises ``RequestRefusedError``."""


@final
class RelaySession:
    """A call over one socket of a carrier; a carrier that comes back does so by its webhook."""

    __slots__ = (
        "_codec", "_connection", "_hosted", "_metrics", "_outbox", "_over", "_redeem", "_release",
        "_transport",
    )  # fmt: skip

    def __init__(
        self,
        connection: WireConnection,
        hosted: HostedCall,
        codec: RelayCodec,
        redeem: Redeem,
        release: Callable[[AnnouncedCall], None],
    ) -> None:
        """Keep what the call needs; nothing happens before ``run()``.

        Args:
            connection: The socket.
            hosted: The call, as the port gives it.
            codec: Reads and writes the messages.
            redeem: Returns the announced call that the first message is of.
            release: Called with it when it is over.
        """
        self._connection = connection
        self._hosted = hosted
        self._metrics = hosted.metrics
        self._codec = codec
        self._redeem = redeem
        self._release = release
        self._over = trio.Event()
        self._outbox = Outbox(max_bytes=hosted.limits.max_waiting_bytes, on_broken=self._overflows)
        self._transport = RelayTransport(codec, self._outbox, hosted)

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
        try:
            announced = self._redeem(await self._opened())
        except RequestRefusedError as refused:
            await self._refuse(refused.code, str(refused))
            return
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._carry)
                end = await self._hosted.run(self._transport)
                if end.was_refused:
                    self._connection.end_with(end.close_code, end.code or "")
                self._outbox.enqueue(self._codec.end(self._transport.handoff))
                self._outbox.close()
                with trio.move_on_after(self._hosted.limits.close_s):
                    await self._over.wait()
                nursery.cancel_scope.cancel(reason="the relay is over")
        finally:
            self._release(announced)

    async def _opened(self) -> Opened:
        """Return the first message.

        Raises:
            RequestRefusedError: It is another, or does not come in time.
        """
        data = None
        with trio.move_on_after(self._hosted.limits.handshake_s):
            data = await self._connection.first()
        if data is None:
            raise RequestRefusedError("bad_message", "no setup came in time")
        opened = self._codec.decode(data)
        if not isinstance(opened, Opened):
            raise RequestRefusedError("bad_message", "the first message is setup")
        return opened

    async def _refuse(self, code: RefusalCode, text: str) -> None:
        self._metrics.rejected[code] += 1
        log.warning("carrier_socket_refused", code=code, why=text)
        self._hosted.end(code)
        self._hosted.forget()
        self._connection.end_with(POLICY_VIOLATION, text)
        self._outbox.close()
        with trio.move_on_after(self._hosted.limits.close_s):
            await self._connection.run(self._outbox, lambda data: None)

    async def _carry(self) -> None:
        try:
            await self._connection.run(self._outbox, self._transport.receive)
        finally:
            self._over.set()
        self._hosted.end("hangup")

    def _overflows(self) -> None:
        log.info("client_reads_too_slowly", waiting=self._outbox.statistics().waiting)
        self._connection.end_with(POLICY_VIOLATION, "it reads too slowly")
        self._hosted.end("disconnected")


REFUSED = HTTPStatus.FORBIDDEN
"""The status for what a carrier did not sign, or announce."""
