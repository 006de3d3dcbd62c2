"""One call over one socket of a far side that hears and speaks, from first message to last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import trio

from bargein.routes.logs import get_logger

from ..._transport_protocol import Transport
from ...protocol._outbox import Outbox
from ...websocket import Data
from ...websocket._connection import POLICY_VIOLATION
from .._wire import CallEnd, HostedCall, RefusalCode, RequestRefusedError, WireConnection

if TYPE_CHECKING:
    from ..._app import SpeechStack
    from ...call._call import Call

log = get_logger()

TakeFirst = Callable[[Data, Callable[[Data], None]], Callable[[], None] | None]
"""Takes the first message, and what takes one that is of the call itself; returns what is called
once the call is over, or ``None`` if the next message opens the call; raises
``RequestRefusedError``."""

MOST_FIRST = 4
"""How many messages a far side may send until it opens the call; carriers send two at most."""


class SocketTransport(Transport, Protocol):
    """The caller's side of a call over one socket, whatever travels.

    Attributes:
        barge_ins: How often the agent was stopped.
        ignored: How many messages of the far side meant nothing, by why.
    """

    barge_ins: int
    ignored: dict[str, int]

    def opened(self, call: Call, /) -> None:
        """Take note that the call is open."""

    def receive(self, data: Data, /) -> None:
        """Apply a message of the far side; never raises."""

    def goodbye(self, end: CallEnd, /) -> Iterable[Data]:
        """Return the last messages."""
        ...

    def close(self, *, was_lost: bool) -> None:
        """End the call, as its socket is closed, or was lost; unless the caller is passed on."""

    def continue_on(self, outbox: Outbox, opening: Sequence[Data] = (), /) -> None:
        """Continue the call over another connection, which has begun with some messages."""


class TextSession:
    """A call over one socket; a far side that comes back opens another call."""

    __slots__ = (
        "_connection", "_hosted", "_metrics", "_open", "_outbox", "_over", "_speech", "_transport",
        "can_leave",
    )  # fmt: skip

    def __init__(
        self,
        connection: WireConnection,
        hosted: HostedCall,
        transport: Callable[[Outbox, HostedCall], SocketTransport],
        *,
        opening: TakeFirst | None = None,
        speech: SpeechStack | None = None,
        can_leave: bool = False,
    ) -> None:
        """Keep what the call needs; nothing happens before ``run()``.

        Args:
            connection: The socket.
            hosted: The call, as the port gives it.
            transport: Returns the caller's side, by the queue of its messages; sound is queued as
                it goes over the wire.
            opening: Takes the first message, before the call is opened; ``None`` opens it at once.
            speech: The ears and the voice of the call; ``None`` for the app's.
            can_leave: Whether the far side comes back when its socket is closed.
        """
        self.can_leave = can_leave
        self._connection = connection
        self._hosted = hosted
        self._metrics = hosted.metrics
        self._open = opening
        self._over = trio.Event()
        self._speech = speech
        self._outbox = Outbox(
            max_bytes=hosted.limits.max_waiting_bytes,
            on_broken=self._overflows,
            encode_audio=None,
        )
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
                release = await self._opened(self._open)
            except RequestRefusedError as refused:
                await self._refuse(refused.code, str(refused))
                return
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._carry)
                end = await self._hosted.run(
                    self._transport, speech=self._speech, opened=self._transport.opened
                )
                if self._hosted.has_left:
                    await self._hosted.release()
                elif end.was_refused:
                    self._connection.end_with(end.close_code, end.code or "")
                is_silent = self._outbox.is_closed or self._hosted.has_left
                for last in () if is_silent else self._transport.goodbye(end):
                    self._outbox.enqueue(last)
                self._outbox.close()
                with trio.move_on_after(self._hosted.limits.close_s):
                    await self._over.wait()
                nursery.cancel_scope.cancel(reason="the call is over")
        finally:
            release()
            self._hosted.forget()

    def give_away(self) -> None:
        """Leave the call to another process, which the far side reaches by itself."""
        self._hosted.leave("moved")

    async def _opened(self, opening: TakeFirst) -> Callable[[], None]:
        """Let the first messages open the call; return what is called once it is over.

        Raises:
            RequestRefusedError: They do not, or do not come in time.
        """
        with trio.move_on_after(self._hosted.limits.handshake_s):
            for _ in range(MOST_FIRST):
                data = await self._connection.first()
                if data is None:
                    break
                release = opening(data, self._transport.receive)
                if release is not None:
                    return release
        raise RequestRefusedError("bad_message", "no first message came in time")

    async def _refuse(self, code: RefusalCode, text: str) -> None:
        self._metrics.rejected[code] += 1
        log.warning("carrier_socket_refused", code=code, why=text)
        self._hosted.end(code)
        self._hosted.forget()
        self._connection.end_with(POLICY_VIOLATION, text)
        self._outbox.close()
        with trio.move_on_after(self._hosted.limits.close_s):
            await self._connection.run(self._outbox, lambda data: None)

    async def resume(self, connection: WireConnection, opening: Sequence[Data] = ()) -> None:
        """Continue the call on another connection; return when that is over.

        Args:
            connection: The socket.
            opening: Its first messages.
        """
        limit = self._hosted.limits.max_waiting_bytes
        self._connection = connection
        self._outbox = Outbox(max_bytes=limit, on_broken=self._overflows, encode_audio=None)
        self._over = trio.Event()
        self._transport.continue_on(self._outbox, opening)
        await self._carry()

    async def _carry(self) -> None:
        try:
            await self._connection.run(self._outbox, self._transport.receive)
        finally:
            self._over.set()
        self._transport.close(was_lost=not self._connection.was_closed_by_peer)

    def _overflows(self) -> None:
        log.info("client_reads_too_slowly", waiting=self._outbox.statistics().waiting)
        self._connection.end_with(POLICY_VIOLATION, "it reads too slowly")
        self._hosted.end("disconnected")
