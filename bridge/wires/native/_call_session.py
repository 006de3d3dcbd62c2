"""One call from its hello to its last message, over as many connections as it takes.

Rule 1. The writer of a line is stopped last, so that the last words of an ending call are sent.
Rule 2. Whatever goes wrong ends only this call, with a reason.
Rule 3. A lost line does not end the call: the agent's voice is held until the client is back, or
the time for that is over.  A client that closes its line itself has left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, final

import trio

from bargein.routes import BargeinError, Event
from bargein.routes.error_containment import as_error, contain, first_error
from bargein.routes.logs import get_logger

from ...conversations import ConversationBusyError
from ...protocol import ErrorCode, ErrorMessage, Resume, encode
from ...protocol._message_base import MAX_UTTERANCE
from ...protocol._outbox import Outbox
from ...protocol._reconnect_backlog import Backlog
from ...websocket import Data
from .._limits import Limits
from .._metrics import KNOWN_REASONS, Metrics
from ._client_rate_limits import MessageReceiver
from ._hello import hello, resumed
from ._line import REFUSED, Line
from ._native_transport import SOUND, NativeTransport
from ._remote_handle import verbs_of
from ._resume_tokens import ResumeTokens

if TYPE_CHECKING:
    from ... import App, Call
    from ..._call_request import CallRequest

UNWIND_S = 1.0
"""How many seconds the tasks of an ended call may take before the client is told of the end."""

STALLED_S = 1.0
"""After how many silent seconds the line of a client counts as stalled while the agent speaks: it
normally reports playback four times a second, and further speech would be lost."""

CONNECTION = "connection"
"""The reason of the hold on the agent's voice."""

log = get_logger()


class _RefusedError(BargeinError):
    """The call is not opened, for a reason that its client gets."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: ErrorCode = code


@final
class CallSession:
    """A call of the native protocol.

    Attributes:
        call_id: The id of the call in logs.
        is_over: Whether the call is over, and its client knows or cannot be told.
    """

    __slots__ = (
        "_app", "_backlog", "_call", "_close_code", "_ending", "_failed", "_forgotten",
        "_heard_at_s", "_is_waiting", "_limits", "_line", "_lines", "_metrics", "_on_open",
        "_opened", "_patience", "_receiver", "_request", "_stalled", "_tokens", "_transport",
        "call_id", "is_over",
    )  # fmt: skip

    def __init__(
        self,
        app: App,
        request: CallRequest,
        limits: Limits,
        metrics: Metrics,
        call_id: str,
        on_open: Callable[[Call], None] = lambda call: None,
    ) -> None:
        """Keep what the call needs; nothing happens before ``run``.

        Args:
            app: The app.
            request: The client's request for the call.
            limits: The server's.
            metrics: The server's counts.
            call_id: The id of the call in logs.
            on_open: Called with the call once it is open; must not raise.
        """
        self.call_id = call_id
        self.is_over = False
        self._app = app
        self._on_open = on_open
        self._request = request
        self._limits = limits
        self._metrics = metrics
        self._call: Call | None = None
        self._ending: str | None = None
        self._failed = False
        self._lines = 0
        self._close_code: int | None = None
        self._line: Line | None = None
        self._tokens = ResumeTokens(call_id)
        self._heard_at_s = trio.current_time()
        self._stalled = False
        self._is_waiting = False
        self._opened = trio.Event()
        self._patience: trio.CancelScope | None = None
        self._forgotten = trio.Event()
        self._backlog = Backlog(self._open_outbox)
        self._transport = NativeTransport(
            self._backlog,
            metrics,
            # An app without speech is text-only, whatever the client asked for.
            audio=request.mode == "audio" and app.speech is not None,
            watch=limits.watch,
            verbs=verbs_of(request.identity),
            greet=self._greet,
            on_received=self._backlog.note_received,
            on_played=self._backlog.note_played,
        )
        self._receiver = MessageReceiver(self._transport, limits, metrics)

    @property
    def user(self) -> str:
        """The user of the caller's identity; empty for nobody in particular."""
        return self._request.identity.user

    def end(self, reason: str) -> None:
        """End the call now; the first reason counts."""
        if self._ending is None:
            self._ending = reason
            if self._call is not None:
                self._call.end(reason)
        if reason == "shutdown":
            self._forgotten.set()

    # --- the call -------------------------------------------------------------------------------

    async def run(self, lasts_s: float = math.inf) -> None:
        """Run the call; return once it is over and no client can come back for its end.

        Cancelling this ends the call without a goodbye.

        Args:
            lasts_s: After how many seconds the call ends; infinite for never.
        """
        started_s = trio.current_time()
        self._metrics.calls_active += 1
        try:
            async with trio.open_nursery() as nursery:
                if lasts_s < math.inf:
                    nursery.start_soon(self._expire, lasts_s)
                await self._converse(nursery)
                await self._say_goodbye()
                nursery.cancel_scope.cancel()
        finally:
            self._account(trio.current_time() - started_s)
            self.is_over = True
        with trio.move_on_after(self._limits.resume_s):
            await self._forgotten.wait()
        self._tokens.revoke()

    async def _expire(self, lasts_s: float) -> None:
        await trio.sleep(lasts_s)
        self.end("token_expired")

    async def _converse(self, nursery: trio.Nursery) -> None:
        try:
            conversation = await self._conversation()
            async with self._app.open_call(
                self._transport,
                caller=self._request.identity.user,
                call_id=self.call_id,
                conversation=conversation,
                request=self._request,
            ) as call:
                self._call = call
                self._on_open(call)
                self._opened.set()
                if call.audio:
                    self._watch_line()
                if self._ending is not None:
                    call.end(self._ending)
                try:
                    await call.ended.wait()
                finally:  # only now: a waiting task would take 2 kB a call
                    nursery.start_soon(self._announce_end, call)
        except BaseException as error:  # noqa: ASYNC103, BLE001  # the outermost edge of a call
            told, rest = contain(error)
            if told is not None:
                self._fail(told)
            if rest is not None:
                raise rest from None  # noqa: ASYNC104  # Cancelled is in it
        finally:
            self._opened.set()

    async def _conversation(self) -> str | None:
        """Return the conversation that the client names.

        Raises:
            _RefusedError: The client may not open it.
        """
        if self._request.conversation is None:
            return None
        with trio.move_on_after(self._limits.handshake_s):
            if await self._app.lets_name_conversation(self._request):
                return self._request.conversation
        if not self._app.callers_name_conversations:
            raise _RefusedError(
                "conversation_refused", "callers of this agent may not name a conversation"
            )
        raise _RefusedError("conversation_refused", "this conversation is not open to you")

    async def _announce_end(self, call: Call) -> None:
        """Send the end even if the call's own tasks do not end in time."""
        await call.ended.wait()
        await trio.sleep(UNWIND_S)
        self._transport.finish(call.end_reason)

    def _fail(self, errors: Exception) -> None:
        error = first_error(errors)
        if self._call is None and isinstance(error, ConversationBusyError):
            error = _RefusedError(
                "conversation_in_use", "this conversation is open in another call"
            )
        if isinstance(error, _RefusedError):
            self._refuse(error)
            return
        log.error("call_failed", exc_info=errors)
        self._transport.refuse("agent_error", f"the agent failed: {type(error).__name__}")
        self._failed = True

    def _refuse(self, refused: _RefusedError) -> None:
        log.info("call_refused", code=refused.code)
        self._metrics.rejected[refused.code] += 1
        self._ending = refused.code
        self._transport.send_message(ErrorMessage(code=refused.code, message=str(refused)))
        self._transport.end_without_call(refused.code)
        if self._line is not None:
            self._line.give_up(REFUSED, refused.code)

    async def _say_goodbye(self) -> None:
        self._transport.settle()  # nothing of the call runs any more
        reason = self._call.end_reason if self._call is not None else ""
        if self._failed and reason in ("", "ended"):
            reason = "failed"
        self._transport.finish(reason or self._ending or "ended")
        line = self._line
        if line is None:
            return
        self._backlog.close()
        with trio.move_on_after(self._limits.close_s):
            await line.over.wait()
            return
        line.cut()

    def _account(self, duration_s: float) -> None:
        self._metrics.calls_active -= 1
        self._set_waiting(False)
        if self._call is None and self._ending in ("conversation_refused", "conversation_in_use"):
            self._forgotten.set()
            return
        reason = self._transport.ended or self._ending or "shutdown"
        self._metrics.call_ended(reason if reason in KNOWN_REASONS else "other", duration_s)
        log.info(
            "call_over",
            reason=reason,
            duration_s=round(duration_s, 3),
            audio=self._transport.audio,
            lines=self._lines,
            messages_out=self._backlog.sent,
            dropped=self._backlog.dropped,
            barge_ins=self._transport.cleared,
            refused=self._receiver.refused,
            close_code=self._close_code,
        )

    # --- its lines ------------------------------------------------------------------------------

    def _open_outbox(self) -> Outbox:
        """Return an outbox that nobody runs, for the time between two lines."""
        return Outbox(
            max_bytes=self._limits.max_waiting_bytes, on_broken=lambda: self.end("disconnected")
        )

    def _greet(self, call: Call) -> None:
        token = self._tokens.renew() if self._limits.resume_s else None
        self._backlog.greet(encode(hello(self._app, call, self._limits, token)))

    async def open_on(self, line: Line) -> None:
        """Run the call on its first line; return when the line is over."""
        self._line = line
        self._backlog.attach(line.outbox)
        await self._carry(line)

    def can_resume(self, asked: Resume) -> bool:
        """Whether a client may resume this call, with nothing lost for good."""
        return self._tokens.fits(asked.token) and self._backlog.can_resume(asked)

    async def resume(self, line: Line, asked: Resume) -> None:
        """Continue on another line; return when that line is over.

        Args:
            line: The line; it takes over from the previous one if that still seems to be up.
            asked: What ``can_resume()`` accepted.
        """
        call = self._call
        assert call is not None  # a client has no token before the call is open
        if self._line is not None:
            self._line.give_up()
            self._lose_line(self._line)
        if self._patience is not None:
            self._patience.cancel()
        self._set_waiting(False)
        self._metrics.reconnects += 1
        self._line = line
        if asked.playing is not None:
            call.report_playback(asked.playing, asked.played_ms, "position")
        token = self._tokens.renew()
        greeting = resumed(
            self._app,
            call,
            self._limits,
            token,
            self._receiver.received,
            verbs_of(self._request.identity),
        )
        self._backlog.resume(line.outbox, asked, encode(greeting))
        log.info("line_resumed", lines=self._lines + 1)
        if asked.utterance is None and call.audio:
            self._backlog.drop_audio(MAX_UTTERANCE)  # its player is empty: everything is sent again
            call.answers.resend()
        if self._transport.ended is not None:
            self._backlog.close()
        call.release_speech(SOUND)  # a loudspeaker that still stands says so again
        self._continue_call(call)
        self._transport.send_hold()
        await self._carry(line)

    async def _carry(self, line: Line) -> None:
        self._lines += 1
        self._heard_at_s = trio.current_time()
        try:
            fate = await line.run(self._receive_or_fail, self._opened, self._end_silent)
            if fate == "said" and line is self._line:
                self._forgotten.set()
            elif fate == "left":
                self.end("disconnected")
        finally:
            self._close_code = line.connection.close_code
            line.note_over()
            if self._line is line:
                self._lose_line(line)

    def line_overflows(self, line: Line) -> None:
        """End the call of a client that reads too slowly: another line would overflow, too."""
        if line is self._line:
            log.info("client_reads_too_slowly", waiting=line.outbox.waiting)
            line.give_up(REFUSED, "it reads too slowly")
            self.end("disconnected")

    def _lose_line(self, line: Line) -> None:
        """Keep the unsent messages and wait for the client, or end the call with its line."""
        self._line = None
        self._backlog.leave()
        call = self._call
        if call is None or call.ended.is_set() or not self._limits.resume_s:
            self.end("disconnected")
            return
        self._metrics.lines_lost += 1
        self._set_waiting(True)
        log.info("line_lost", close_code=line.connection.close_code)
        if call.audio:
            call.hold_speech(CONNECTION)
        self._patience = patience = trio.CancelScope()
        call.nursery.start_soon(self._wait_for_client, patience, name="line")

    def _set_waiting(self, on: bool) -> None:
        self._metrics.calls_waiting += on - self._is_waiting
        self._is_waiting = on

    async def _wait_for_client(self, patience: trio.CancelScope) -> None:
        with patience:
            await trio.sleep(self._limits.resume_s)
            self.end("disconnected")

    def _continue_call(self, call: Call) -> None:
        self._stalled = False
        if not call.ended.is_set():
            call.release_speech(CONNECTION)

    def _end_silent(self) -> None:
        self.end("silence")

    def _watch_line(self) -> None:
        """Hold the agent's voice while the line is up but silent."""
        call = self._call
        assert call is not None
        now_s = trio.current_time()
        due_s = self._heard_at_s + STALLED_S
        if now_s >= due_s:
            due_s = now_s + STALLED_S
            if self._line is not None and self._would_report(call):
                self._stalled = True
                log.info("line_stalled")
                call.hold_speech(CONNECTION)
        # A timer, because a task takes 2 kB a call.
        call.router.call_at(self, due_s, self._watch_line)

    def _would_report(self, call: Call) -> bool:
        answers = call.answers
        return (
            self._transport.has_reported and answers.audio.is_audible and not answers.audio.is_held
        )

    # --- what the client sends ------------------------------------------------------------------

    def _receive_or_fail(self, data: Data) -> None:
        try:
            self._receive(data)
        except BaseException as caught:  # noqa: ASYNC103 - see as_error()
            log.error("call_failed", exc_info=as_error(caught))
            self._transport.refuse("agent_error", "the agent failed")
            self.end("failed")

    def publish(self, event: Event) -> None:
        """Publish an event in the call, if it is open."""
        call = self._call
        if call is not None and not call.ended.is_set():
            call.router.publish_detached(event, "call")

    def _receive(self, data: Data) -> None:
        call = self._call
        if call is None or call.ended.is_set():
            return
        self._heard_at_s = trio.current_time()
        self._tokens.confirm()
        if self._stalled:
            self._continue_call(call)
        self._receiver.handle(data, call)
