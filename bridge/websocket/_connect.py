"""The client's side of an opening: TCP or a proxy, TLS, and the WebSocket handshake.

Rule 1. The whole opening has one deadline.
Rule 2. Every failure is an ``OSError`` that names the host; if the server refuses, it is a
``HandshakeRefusedError`` with status, headers and body.
Rule 3. No error message contains credentials: addresses are shown without user and query.
"""

from __future__ import annotations

import ssl as ssl_module
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import trio
from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.exceptions import InvalidStatus, InvalidURI
from websockets.protocol import State
from websockets.typing import Origin, Subprotocol
from websockets.uri import WebSocketURI, parse_uri

from bargein.routes import BargeinError

from ..validation.arguments import check_strings
from ..validation.event_loop import check_trio
from ._accept import read_head
from ._connection import READ_BYTES, Connection, Source, torn_on_error
from ._protocol_log import PROTOCOL_LOG
from ._websocket import MAX_WAITING_BYTES, WebSocket, using

ENVIRONMENT: Final = "environment"
"""Use the proxy that ``HTTPS_PROXY``, ``HTTP_PROXY`` or ``ALL_PROXY`` names, if any, except for the
hosts in ``NO_PROXY``."""


class HandshakeRefusedError(BargeinError, ConnectionError):
    """The server answered, but opened no WebSocket.

    Attributes:
        status: Its HTTP status.
        headers: Its headers.
        body: The body of its response, at most 1 MiB.
    """

    def __init__(self, where: str, status: int, headers: Headers, body: bytes) -> None:
        super().__init__(f"{where} answered {_status(status)} instead of opening a WebSocket")
        self.status = status
        self.headers = headers
        self.body = body


@asynccontextmanager
async def open_websocket(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    origin: str | None = None,
    subprotocols: Sequence[str] = (),
    ssl: ssl_module.SSLContext | None = None,
    proxy: str | None = ENVIRONMENT,
    connect_s: float = 10.0,
    max_size: int | None = 1_048_576,
    max_waiting_bytes: int = MAX_WAITING_BYTES,
    stall_s: float | None = 10.0,
    ping_s: float | None = 20.0,
    close_s: float = 2.0,
    stream: trio.abc.Stream | None = None,
    source: Source | None = None,
) -> AsyncIterator[WebSocket]:
    """Open a WebSocket to a server while the block runs; leaving the block closes it.

    Args:
        url: ``ws://`` or ``wss://``; a user and password in it become an authorization header.
        headers: Further headers of the handshake; they replace those of the same name.
        origin: The Origin header; ``None`` sends none, as programs do.
        subprotocols: The subprotocols to offer, most preferred first.
        ssl: Context for TLS; ``None`` uses the default one for ``wss://``.
        proxy: An ``http://`` or ``https://`` address; ``"environment"`` reads the environment;
            ``None`` connects directly.
        connect_s: Seconds that opening the connection may take.
        max_size: The largest message that is received, in bytes; ``None`` for no limit.
        max_waiting_bytes: See ``using``.
        stall_s: Seconds that the server may read nothing of what is sent; ``None`` for no limit.
        ping_s: After how many seconds of silence the server is pinged, and how long its answer may
            take; ``None`` never pings.
        close_s: Seconds that closing may take.
        stream: A connection to use instead of opening one; `ssl` and `proxy` are then ignored.
        source: The messages to send; ``None`` sends those given to ``WebSocket.send()``.

    Raises:
        TypeError: `subprotocols` is not a list of strings.
        ValueError: `url` or `proxy` is not a valid address.
        TimeoutError: It was not open in time; an OSError.
        HandshakeRefusedError: The server refused; a ConnectionError.
        ConnectionError: The peer is not a WebSocket server, or the line was lost.
        OSError: The server cannot be reached.
        RuntimeError: This does not run on trio.
    """
    check_trio("open_websocket()")
    check_strings("open_websocket(subprotocols=)", subprotocols)
    try:
        address = parse_uri(url)
    except (InvalidURI, ValueError) as error:
        raise ValueError(f"url: {_shown(url)} is not a ws:// or wss:// address") from error
    where = f"{address.host}:{address.port}"
    protocol = ClientProtocol(
        address,
        origin=None if origin is None else Origin(origin),
        subprotocols=[Subprotocol(name) for name in subprotocols] or None,
        max_size=max_size,
        logger=PROTOCOL_LOG,
    )
    with trio.move_on_after(connect_s) as patience:
        if stream is None:
            stream = await _reach(address, ssl, proxy)
        async with torn_on_error(stream):
            await _shake_hands(stream, protocol, headers or {}, where)
    if patience.cancelled_caught:
        raise TimeoutError(f"{where} did not open a WebSocket within {connect_s:g} s")
    assert stream is not None  # otherwise the deadline has passed
    connection = Connection(stream, protocol, stall_s=stall_s, ping_s=ping_s, close_s=close_s)
    async with using(connection, source, max_waiting_bytes=max_waiting_bytes) as websocket:
        yield websocket


async def _shake_hands(
    stream: trio.abc.Stream, protocol: ClientProtocol, headers: Mapping[str, str], where: str
) -> None:
    request = protocol.connect()
    for name, value in headers.items():
        if name in request.headers:
            del request.headers[name]
        request.headers[name] = value
    protocol.send_request(request)
    try:
        await stream.send_all(b"".join(protocol.data_to_send()))
        head, rest = await read_head(stream)
        protocol.receive_data(head)
        if protocol.state is State.OPEN:
            protocol.events_received()  # remove the response; frames may follow it
            if rest:
                protocol.receive_data(rest)
            return
        protocol.receive_data(rest)
        while protocol.handshake_exc is None:  # until its body is there
            more = await stream.receive_some(READ_BYTES)
            if more:
                protocol.receive_data(more)
            else:
                protocol.receive_eof()
    except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
        raise ConnectionError(f"{where} closed the line in the handshake") from error
    except ValueError as error:
        raise ConnectionError(f"{where} does not speak HTTP: {error}") from error
    refusal = protocol.handshake_exc
    if isinstance(refusal, InvalidStatus):
        response = refusal.response
        body = bytes(response.body or b"")
        raise HandshakeRefusedError(
            where, response.status_code, response.headers, body
        ) from refusal
    raise ConnectionError(f"{where} refused the WebSocket: {refusal}") from refusal


# --- reaching the server ------------------------------------------------------------------------


async def _reach(
    address: WebSocketURI, ssl: ssl_module.SSLContext | None, proxy: str | None
) -> trio.abc.Stream:
    if proxy == ENVIRONMENT:
        proxy = _proxy_for(address)
    stream: trio.abc.Stream
    if proxy is None:
        stream = await trio.open_tcp_stream(address.host, address.port)
    else:
        stream = await _through(proxy, address)
    if address.secure:
        stream = await _secure(stream, address.host, ssl)
    return stream


async def _secure(
    stream: trio.abc.Stream, host: str, context: ssl_module.SSLContext | None
) -> trio.abc.Stream:
    # Vendors' servers close without TLS's close_notify; the WebSocket has its own close.
    secured = trio.SSLStream(
        stream,
        context or _default_context(),
        server_hostname=host,
        https_compatible=True,
    )
    async with torn_on_error(stream):
        try:
            await secured.do_handshake()
        except trio.BrokenResourceError as error:
            raise ConnectionError(f"{host}: TLS failed: {error.__cause__}") from error
    return secured


@cache
def _default_context() -> ssl_module.SSLContext:
    """Return the context shared by all connections without their own.

    It has the certificates of all authorities that the system trusts: 0.9 MB, and 20 ms to read.
    """
    return ssl_module.create_default_context()


def _proxy_for(address: WebSocketURI) -> str | None:
    if proxy_bypass(f"{address.host}:{address.port}"):
        return None
    proxies = getproxies()
    scheme = "https" if address.secure else "http"
    return proxies.get(scheme) or proxies.get("all")


async def _through(proxy: str, address: WebSocketURI) -> trio.abc.Stream:
    """Return a stream to a server behind a proxy (RFC 9110, section 9.3.6)."""
    parts = urlsplit(proxy)
    if parts.scheme not in ("http", "https") or parts.hostname is None:
        raise ValueError(f"proxy: {_shown(proxy)} is not an http:// or https:// address")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    stream: trio.abc.Stream = await trio.open_tcp_stream(parts.hostname, port)
    if parts.scheme == "https":
        stream = await _secure(stream, parts.hostname, None)
    host = f"[{address.host}]" if ":" in address.host else address.host
    target = f"{host}:{address.port}"
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *_credentials(parts), "", ""]
    async with torn_on_error(stream):
        try:
            await stream.send_all("\r\n".join(lines).encode())
            head, _ = await read_head(stream)  # nothing can follow before we send
        except (ValueError, trio.BrokenResourceError) as error:
            raise ConnectionError(f"the proxy {parts.hostname}:{port} did not answer") from error
        status = head.split(b"\r\n", 1)[0].split(b" ")[1:2]
        if not status or not status[0].startswith(b"2"):
            said = b"".join(status).decode(errors="replace")[:20]
            raise ConnectionError(
                f"the proxy {parts.hostname}:{port} answered {said!r} for {target}"
            )
    return stream


def _credentials(parts: SplitResult) -> list[str]:
    if parts.username is None:
        return []
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return [f"Proxy-Authorization: Basic {b64encode(pair.encode()).decode()}"]


def _shown(url: str) -> str:
    """Return an address without its possibly secret parts."""
    return repr(url.partition("?")[0].rpartition("@")[2])


def _status(code: int) -> str:
    try:
        return f"{code} {HTTPStatus(code).phrase}"
    except ValueError:
        return str(code)
