"""One connection from its hello to its last message.

Rule 1. The writer is started first and stopped last, so what the call says while it ends is heard.
Rule 2. Whatever goes wrong ends this call, with a reason, and nothing else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, final

import structlog
import trio
from structlog.contextvars import bound_contextvars
from websockets.exceptions import ConnectionClosed

from ._http import call_mode
from ._limits import Limits, RateLimit
from ._metrics import Metrics
from ._native import HangUp, Hello, ProtocolViolation, Stop, decode_client
from ._socket import Data, Outbox, SafeServer
from ._transport import NativeTransport

if TYPE_CHECKING:
    from .. import App, Call

KNOWN_REASONS = frozenset(
    {
        "agent_ended",
        "agent_error",
        "disconnected",
        "ended",
        "failed",
        "hangup",
        "shutdown",
        "silence",
    }
)
"""Reasons with a row of their own in the metrics; an agent may end calls with any word."""

COMPLAINTS_PER_S = 10.0
COMPLAINT_BURST = 100
"""Errors told to one client; more are counted but not told, so that nobody can make us talk."""

UNWIND_S = 1.0
"""How long the tasks of an ended call may take before the client is told that it is over."""

log = structlog.get_logger()


@final
class Session:
    """A call over one WebSocket connection of the native protocol."""

    def __init__(
        self, connection: SafeServer, app: App, limits: Limits, metrics: Metrics, call_id: str
    ) -> None:
        """Keep what the call needs; nothing happens before ``run``."""
        assert connection.request is not None  # the handshake is over
        self._connection = connection
        self._app = app
        self._limits = limits
        self._metrics = metrics
        self._call_id = call_id
        self._call: Call | None = None
        self._ending: str | None = None
        self._rate = RateLimit(limits.messages_per_s, limits.message_burst)
        self._complaints = RateLimit(COMPLAINTS_PER_S, COMPLAINT_BURST)
        self._refused = 0
        self._failed = False
        self._outbox = Outbox(
            connection,
            max_bytes=limits.max_waiting_bytes,
            stall_s=limits.stall_s,
            on_broken=lambda _: self.end("disconnected"),
        )
        self._transport = NativeTransport(
            self._outbox,
            metrics,
            # An app without a voice reads and writes, whatever the client would like.
            audio=call_mode(connection.request) == "audio" and app.speech is not None,
        )

    def end(self, reason: str) -> None:
        """End the call now; the first reason given holds."""
        if self._ending is None:
            self._ending = reason
            if self._call is not None:
                self._call.end(reason)

    async def run(self) -> None:
        """Hold the call; returns once it is over and the connection closed.

        Cancelling it closes the connection without a word.
        """
        started_s = trio.current_time()
        with bound_contextvars(call_id=self._call_id):
            try:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._outbox.run)
                    await self._converse(nursery)
                    await self._say_goodbye()
                    nursery.cancel_scope.cancel()
            finally:
                self._account(trio.current_time() - started_s)

    async def _converse(self, nursery: trio.Nursery) -> None:
        self._transport.tell(
            Hello(call=self._call_id, agent=self._app.name, audio=self._transport.audio)
        )
        try:
            async with self._app.open_call(self._transport, call_id=self._call_id) as call:
                self._call = call
                nursery.start_soon(self._announce_end, call)
                if self._ending is not None:
                    call.end(self._ending)
                await self._hold(call)
        except* Exception as errors:  # noqa: BLE001  # the outermost edge of a call: told and logged
            self._fail(errors)

    async def _announce_end(self, call: Call) -> None:
        """Tell the end when the call's own tasks do not come to theirs."""
        await call.ended.wait()
        await trio.sleep(UNWIND_S)
        self._transport.finish(call.end_reason)

    async def _hold(self, call: Call) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._read, call)
            await call.ended.wait()
            nursery.cancel_scope.cancel()

    async def _read(self, call: Call) -> None:
        silence_s = math.inf if self._limits.silence_s is None else self._limits.silence_s
        try:
            with trio.move_on_after(silence_s) as patience:
                while not call.ended.is_set():
                    data = await self._connection.recv()
                    patience.deadline = trio.current_time() + silence_s
                    self._take(data, call)
        except ConnectionClosed:
            self.end("disconnected")
        if patience.cancelled_caught:
            self.end("silence")

    def _take(self, data: Data, call: Call) -> None:
        within_rate = isinstance(data, bytes) or self._rate.take()
        try:
            message = decode_client(data, max_bytes=self._limits.max_message_bytes)
            # The two ways to make the agent stop work at any rate.
            if not within_rate and not isinstance(message, Stop | HangUp):
                raise ProtocolViolation(
                    "rate_limited",
                    f"more than {self._limits.messages_per_s:g} messages per second",
                )
            self._transport.receive(message, call)
        except ProtocolViolation as violation:
            self._refused += 1
            if self._complaints.take():
                self._transport.refuse(violation.code, violation.message, violation.request)
            else:
                self._metrics.errors[violation.code] += 1

    def _fail(self, errors: BaseExceptionGroup[Exception]) -> None:
        log.error("call_failed", exc_info=errors)
        self._transport.refuse("agent_error", f"the agent failed: {_name_of(errors)}")
        self._failed = True

    async def _say_goodbye(self) -> None:
        self._transport.settle()  # nothing of the call is alive any more
        reason = self._call.end_reason if self._call is not None else ""
        if self._failed and reason in ("", "ended"):
            reason = "failed"
        self._transport.finish(reason or self._ending or "ended")
        self._outbox.close()
        with trio.move_on_after(self._limits.close_s):
            await self._outbox.finished.wait()
            await self._connection.aclose()

    def _account(self, duration_s: float) -> None:
        reason = self._transport.ended or self._ending or "shutdown"
        self._metrics.call_ended(reason if reason in KNOWN_REASONS else "other", duration_s)
        log.info(
            "call_over",
            reason=reason,
            duration_s=round(duration_s, 3),
            audio=self._transport.audio,
            messages_out=self._outbox.sent,
            dropped=self._outbox.dropped,
            barge_ins=self._transport.cleared,
            refused=self._refused,
            close_code=self._connection.close_code,
        )


def _name_of(errors: BaseExceptionGroup[Exception]) -> str:
    """Return the class of the first real error inside nested groups."""
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return type(error).__name__
