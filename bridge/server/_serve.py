"""The server: one port for the page, health, metrics and calls."""

from __future__ import annotations

import math
import ssl as ssl_module
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Unpack, final

import trio
from structlog.contextvars import bind_contextvars

from bargein.routes.error_containment import CONTAINED
from bargein.routes.error_hints import SuggestsNames
from bargein.routes.logs import get_logger
from bargein.routes.service_nursery import open_service_nursery

from ..events import EventLoopBlocked
from ..monitoring._event_loop_watchdog import watch_loop
from ..protocol import (
    ErrorCode,
    ErrorMessage,
    ProtocolViolationError,
    Resume,
    decode_client,
    encode,
)
from ..protocol._outbox import Outbox
from ..validation.arguments import check_has, check_instance, check_strings
from ..validation.event_loop import check_trio
from ..websocket import Connection, accept, check_all
from ..wires._limits import HARD_LIMIT_FACTOR, Limits
from ..wires._metrics import Metrics
from ..wires._operators import Operators
from ..wires.native._call_session import CallSession
from ..wires.native._hello import about
from ..wires.native._line import REFUSED, Line
from ..wires.native._resume_tokens import call_of
from ._access import Access, Bearer, Origins, time_left_s
from ._admission import Admission
from ._connections_per_address import TRUST_THE_PROXY, Addresses
from ._http import (
    ABOUT_PATH,
    CONTENT_TYPES,
    HttpGate,
    load_page,
    peer_of,
    wants_resume,
    wants_to_watch,
)
from ._listening_sockets import PatientListener, address_of, all_loopback, open_listeners
from ._proxies import TrustedProxies
from ._resume_connections import LATE_CLOSE_S, ResumeConnections
from ._server_options import ServerOptions

if TYPE_CHECKING:
    from .. import App
    from .._call_request import CallRequest

TRY_AGAIN_LATER = 1013
"""Close code for a server without room (IANA WebSocket Close Code Number Registry)."""

PING_S = 10.0
"""How often a connection is pinged, and how long the answer may take, in seconds: a peer that
vanished is detected after 20 s at the latest.  Sleeping phones answer within a few seconds."""

log = get_logger()


@final
class Server(SuggestsNames):
    """A running server, made by ``open_server``.

    Attributes:
        metrics: Its counts.
        port: The TCP port it listens on; 0 for listeners without one.
        url: The address of its page.
    """

    def __init__(
        self,
        app: App,
        listeners: Sequence[trio.SocketListener],
        limits: Limits,
        *,
        access: Access,
        proxies: TrustedProxies,
        ssl: ssl_module.SSLContext | None,
    ) -> None:
        """Keep what calls need; use ``open_server``."""
        self.metrics = Metrics()
        host, self.port = address_of(listeners)
        self.url = f"http{'s' * (ssl is not None)}://{host}:{self.port}/"
        self._app = app
        self._limits = limits
        self._sessions: dict[str, CallSession] = {}
        self._lines: set[Line | Connection] = set()
        self._operators = Operators()
        self._calls: trio.Nursery | None = None
        self._resuming = ResumeConnections(
            limits.max_calls, limits.resumes_per_address, self.metrics.over_budget
        )
        self._idle = trio.Event()
        self._draining = False
        self._service = trio.CancelScope()
        self._grace = trio.CancelScope()
        self._listening = trio.CancelScope()
        is_open = not access.needs_token and app.admit is None
        page = load_page() | {ABOUT_PATH: (CONTENT_TYPES["json"], about(app, named=is_open))}
        gate = HttpGate(self.metrics, self.room, access, page=page, is_encrypted=ssl is not None)
        self._access = access
        self._addresses = Addresses(limits, self.metrics.over_budget)
        self._admission = Admission(app, gate, access, self._addresses, proxies)
        self._is_encrypted = ssl is not None
        self._listeners: list[Any] = [
            one if ssl is None else trio.SSLListener(one, ssl, https_compatible=True)
            for one in listeners
        ]

    @property
    def calls(self) -> int:
        """The open calls, including those whose connection has dropped."""
        return sum(not session.is_over for session in self._sessions.values())

    def room(self) -> ErrorCode | None:
        """Return why no call can be opened now; ``None`` if one can."""
        if self._draining:
            return "draining"
        return "server_full" if self.calls >= self._limits.max_calls else None

    def end_calls(self, *, user: str, reason: str = "revoked") -> int:
        """End the calls of a user, and the user's connections to ``/watch``, now.

        The user's tokens stay valid until they expire: to keep the user out, let ``App(admit=...)``
        refuse first.

        Args:
            user: The user of the calls' identities.
            reason: Why, for logs, ``CallEnded`` and the client.

        Returns:
            How many calls it ended.

        Raises:
            ValueError: The user is empty, as that of everybody without a name.
        """
        if not user:
            raise ValueError("end_calls(user=) needs a user; '' is that of all callers without one")
        calls = [one for one in self._sessions.values() if one.user == user and not one.is_over]
        for session in calls:
            session.end(reason)
        self._operators.end(user)
        return len(calls)

    def force(self) -> None:
        """Close everything now, even while the server is draining."""
        self._service.cancel(reason="forced")
        self._grace.cancel(reason="forced")

    def report_block(self, event: EventLoopBlocked, call_id: str | None) -> None:
        """Publish that code blocked the event loop: in its call, or in all if it is of none."""
        for session in tuple(self._sessions.values()):
            if call_id in (None, session.call_id):
                session.publish(event)

    async def drain(self) -> None:
        """Refuse new calls, end those that are open with reason ``shutdown``, stop listening.

        It returns once all are over, which the limits of each call bound; it has no deadline of its
        own.  Cancelling it is safe.
        """
        self._draining = True
        for session in tuple(self._sessions.values()):
            session.end("shutdown")
        while self._sessions:
            self._idle = trio.Event()
            await self._idle.wait()
        self._listening.cancel(reason="drained")

    async def _serve_stream(self, stream: trio.abc.Stream) -> None:
        try:
            serve = await self._admit(stream)
            if serve is not None:
                with CONTAINED:
                    await serve()
        except Exception:
            # A fault of the server, and no other connection's.
            log.exception("connection_failed")

    async def _admit(self, stream: trio.abc.Stream) -> Callable[[], Awaitable[None]] | None:
        """Return the function that serves an admitted connection; its request can then be freed."""
        limits = self._limits
        pending = self._admission.pending(peer_of(stream), secure=self._is_encrypted)
        if not pending.wait():
            return None  # the caller of this closes it
        try:
            opened = await accept(
                stream,
                pending.answer,
                finish=self._admission.gate.secure,
                handshake_s=limits.handshake_s,
                max_size=limits.max_message_bytes * HARD_LIMIT_FACTOR,
                stall_s=limits.stall_s,
                ping_s=PING_S,
                close_s=limits.close_s,
            )
        finally:
            pending.asks()
        if opened is None:
            return None
        request, connection = opened
        if wants_to_watch(request):
            assert pending.bearer is not None  # nobody else is admitted
            return partial(self._serve_operator, connection, pending.bearer)
        if pending.call is None or wants_resume(request):
            return partial(self._resume, connection, pending.address)
        return partial(self._serve_call, connection, pending.call, pending.address)

    async def _serve_call(
        self, connection: Connection, asked: CallRequest, address: str | None
    ) -> None:
        why_not = self.room()
        if why_not is None and not self._addresses.has_room(address, "calls"):
            why_not = "rate_limited"
        if why_not is not None:  # others came during the handshake
            await self._refuse(connection, why_not, "no room")
            return
        session = self._open(asked, address)
        bind_contextvars(call_id=session.call_id)  # never unbound: each connection has its own task
        await self._run_line(connection, session, session.open_on)

    async def _serve_operator(self, connection: Connection, bearer: Bearer) -> None:
        user = bearer.identity.user
        why_not = self._operators.why_not(user)
        if why_not:
            await self._refuse(connection, "server_full", why_not)
            return
        self._lines.add(connection)
        try:
            await self._operators.serve(connection, user, time_left_s(bearer.expires_s))
        finally:
            self._lines.remove(connection)

    async def _run_line(
        self, connection: Connection, session: CallSession, carry: Callable[[Line], Awaitable[None]]
    ) -> None:
        """Check a line about once a second while something carries it."""
        line = Line(connection, self._limits, session.line_overflows)
        self._lines.add(line)
        try:
            await carry(line)
        finally:
            self._lines.remove(line)

    def _open(self, request: CallRequest, address: str | None) -> CallSession:
        assert self._calls is not None  # nobody can connect before run()
        limits = self._limits
        if "watch" not in request.identity.rights:
            limits = replace(limits, watch="off")
        attend = self._operators.attend
        session = CallSession(self._app, request, limits, self.metrics, token_hex(8), attend)
        self._sessions[session.call_id] = session
        self._addresses.reserve(address, "calls")
        lasts_s = time_left_s(request.token_expires_s) if self._access.calls_expire else math.inf
        name = f"call {session.call_id}"
        self._calls.start_soon(self._run, session, address, lasts_s, name=name)
        return session

    async def _run(self, session: CallSession, address: str | None, lasts_s: float) -> None:
        bind_contextvars(call_id=session.call_id)
        try:
            with CONTAINED:
                await session.run(lasts_s)
        except Exception:
            # A fault of the server itself; it must not affect other calls.
            log.exception("session_failed")
        finally:
            self._operators.leave(session.call_id)
            self._addresses.give_back(address, "calls")
            del self._sessions[session.call_id]
            if not self._sessions:
                self._idle.set()

    async def _resume(self, connection: Connection, address: str | None) -> None:
        """Let a client resume its call on this connection."""
        said, asked = False, None
        with self._resuming.wait(address):
            asked = await self._asked(connection)
            said = True
        if not said:
            # No error, which would be the end for a client whose first message is late.
            with trio.move_on_after(LATE_CLOSE_S):
                await self._close(connection, TRY_AGAIN_LATER, "your first message is late")
            return
        session = None if asked is None else self._sessions.get(call_of(asked.token))
        if asked is None or session is None or not session.can_resume(asked):
            await self._refuse(connection, "resume_expired", "there is no such call any more")
            return
        bind_contextvars(call_id=session.call_id)
        await self._run_line(connection, session, partial(session.resume, asked=asked))

    async def _asked(self, connection: Connection) -> Resume | None:
        """Return a client's request to resume; ``None`` for another message or none."""
        data = await connection.first()
        try:
            message = None if data is None else decode_client(data)
        except ProtocolViolationError:
            return None
        return message if isinstance(message, Resume) else None

    async def _refuse(self, connection: Connection, code: ErrorCode, text: str) -> None:
        self.metrics.rejected[code] += 1
        close_code = TRY_AGAIN_LATER if code != "resume_expired" else REFUSED
        await self._close(connection, close_code, code, ErrorMessage(code=code, message=text))

    async def _close(
        self, connection: Connection, code: int, reason: str, *last: ErrorMessage
    ) -> None:
        last_words = Outbox()
        for message in last:
            last_words.enqueue(encode(message))
        last_words.close()
        connection.end_with(code, reason)
        with trio.move_on_after(self._limits.close_s):
            await connection.run(last_words, lambda data: None)

    async def run(self, task_status: trio.TaskStatus[None]) -> None:
        """Serve until ``force``; an outer cancellation counts only until the server is ready."""
        with self._service:
            async with self._app.open(), trio.open_nursery() as nursery:
                self._calls = nursery
                nursery.start_soon(check_all, lambda: self._lines)
                await nursery.start(self._listen, nursery)
                # Calls outlive the owner's cancellation, so that their clients learn why they end.
                self._service.shield = True
                log.info("server_started", url=self.url)
                task_status.started()

    async def _listen(self, nursery: trio.Nursery, task_status: trio.TaskStatus[Any]) -> None:
        with self._listening:
            await trio.serve_listeners(
                self._serve_stream,
                [PatientListener(listener) for listener in self._listeners],
                handler_nursery=nursery,
                task_status=task_status,
            )

    async def stop(self, grace: trio.CancelScope) -> None:
        """Drain while ``grace`` lasts, which ``force`` ends, then close what is left."""
        self._grace = grace
        try:
            await self.drain()
        finally:
            log.info("server_stopped", calls_cut=self.calls)
            self._service.cancel(reason="server stopped")


@asynccontextmanager
async def open_server(
    app: App,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    token_secret: str | None = None,
    second_token_secret: str | None = None,
    audience: str | None = None,
    issuer: str | None = None,
    calls_expire: bool = False,
    metrics_token: str | None = None,
    host_names: Sequence[str] = (),
    origins: Origins | None = None,
    trusted_proxies: Sequence[str] = (),
    insecure: bool = False,
    limits: Limits | None = None,
    ssl: ssl_module.SSLContext | None = None,
    listeners: Sequence[trio.SocketListener] | None = None,
) -> AsyncIterator[Server]:
    """Serve an app while the block runs; leaving the block drains the server.

    Leaving the block, also by cancellation, refuses new calls, ends open ones with reason
    ``shutdown`` and returns after ``limits.drain_s`` at the latest.

    A server that other machines can reach, by its address or by `host_names`, is public: it needs
    `token`, `token_secret` or an app with ``admit=``, and callers see and control only what their
    identity has the right to.

    Args:
        app: Answers the calls; opened before the first one.
        host: Address to listen on.
        port: TCP port; 0 picks a free one.
        token: The token that clients must send for calls and metrics, as ``Authorization: Bearer``
            or ``?token=``; ``None`` requires none.
        token_secret: The secret that verifies signed tokens, at least 32 bytes; the bearer of a
            valid one calls as its user.  See ``sign_token``.
        metrics_token: A token that is valid for the metrics only.
        host_names: The names under which it is reached, without ports.  A request whose Host is
            neither one of these, nor a name of this machine, nor an address is refused, as a
            foreign name may have been rebound to this server.
        origins: Pages that may open calls, as exact origins (``"https://example.com"``) or patterns
            that match whole origins; ``None`` allows pages of this server and, unless it is public,
            of localhost.  Clients that send no Origin (programs) are always allowed.
        trusted_proxies: Addresses or nets (``"10.0.0.0/8"``) whose ``X-Forwarded-For`` and
            ``-Proto``, or ``Forwarded``, say who calls and how; makes the server public.
        insecure: Whether a public server lets everybody call.
        limits: Its limits; ``None`` for the defaults.
        ssl: Context for TLS; None serves plain HTTP.
        listeners: Sockets to serve instead of `host` and `port`; closed at the end.

    Raises:
        OSError: The address cannot be listened on; ``errno`` says why.
        RuntimeError: This does not run on trio.
        TypeError: `app` is not an App, or a list is one string.
        UnguardedError: It is public, and nothing keeps strangers out.
        ValueError: A secret or a token is too short, a token is empty, a host name is none, or a
            proxy is not an address.
        ExceptionGroup: The app could not be opened, or the server failed.
    """
    check_trio("open_server()")
    check_has("open_server(app=)", app, "open_call", example="App(answer)", required=True)
    check_instance("open_server(limits=)", limits, Limits)
    check_strings("open_server(trusted_proxies=)", trusted_proxies)
    limits = limits or Limits()
    if listeners is None:
        listeners = await open_listeners(host, port)
    try:
        proxies = TrustedProxies(trusted_proxies)
        listens_publicly = not all_loopback(listeners)
        access = Access(
            public=listens_publicly or bool(host_names) or bool(proxies),
            listens_publicly=listens_publicly,
            host_names=host_names,
            origins=origins,
            token=token,
            token_secret=token_secret,
            second_token_secret=second_token_secret,
            audience=audience,
            issuer=issuer,
            calls_expire=calls_expire,
            metrics_token=metrics_token,
        )
        if not insecure:
            where = ", ".join(host_names) or host
            access.check_guarded(where, admits=app.admit is not None)
        if host_names and not listens_publicly and not proxies:
            log.warning("no_limits_by_address", host_names=list(host_names), advice=TRUST_THE_PROXY)
        server = Server(app, listeners, limits, access=access, proxies=proxies, ssl=ssl)
        with watch_loop(server.metrics.loop_delay.observe, on_block=server.report_block):
            async with open_service_nursery("the server is closed") as nursery:
                await nursery.start(server.run)
                try:
                    yield server
                finally:
                    with trio.move_on_after(limits.drain_s, shield=True) as grace:
                        await server.stop(grace)
    finally:
        with trio.move_on_after(limits.close_s, shield=True):
            for listener in listeners:
                await listener.aclose()


async def serve(
    app: App,
    *,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
    **options: Unpack[ServerOptions],
) -> None:
    """Serve an app until cancelled, then drain; for ``nursery.start``, which gives the port.

    Args:
        app: What answers calls.
        task_status: Given the port.
        options: Those of ``open_server``.

    Raises:
        OSError: The address cannot be listened on.
        UnguardedError: It is public, and nothing keeps strangers out.
        ExceptionGroup: The app could not be opened, or the server failed.
    """
    async with open_server(app, **options) as server:
        task_status.started(server.port)
        await trio.sleep_forever()
