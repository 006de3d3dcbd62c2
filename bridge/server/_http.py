"""Plain HTTP on the server's port: the page, health, metrics, and who may open a call.

Each connection serves one request, and a request must have no body.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import final
from urllib.parse import parse_qs

import trio
from websockets.http11 import Response

from .._call_request import CallRequest, Identity, check_conversation
from ..protocol import ErrorCode, ErrorMessage, encode
from ..websocket import HttpRequest, http_response
from ..wires._metrics import CONTENT_TYPE, Metrics
from ._access import Access, Bearer
from ._origins import OriginCheck, header_of

CALL_PATH = "/ws"

WATCH_PATH = "/watch"
"""The path for operators; see ``_operators.py``."""

ABOUT_PATH = "/page/agent.json"
"""The path of what the page shows about the agent before a call; see ``about()``."""

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src {calls}; "
    "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""What this server's page may do: only run its own files and connect to its own server."""

SECURITY_HEADERS = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Permissions-Policy", "microphone=(self), camera=(), geolocation=(), display-capture=()"),
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cache-Control", "no-store"),
)

HSTS_S = 31_536_000
"""For how many seconds a browser that came over TLS uses nothing else: a year, as the
preload list of browsers demands (hstspreload.org).  Not for names of this machine: it would hold
for all that is developed on it."""

_HOST = re.compile(r"[A-Za-z0-9.-]+(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]+\](:[0-9]{1,5})?")
"""A Host that is safe in a response header: a name or an address, and a port."""

CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "txt": "text/plain; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
    "woff2": "font/woff2",
    "wav": "audio/wav",
}
"""The types of the page's files; other files of its folder are not served."""

PageFiles = dict[str, tuple[str, bytes]]
"""Path on the server → content type, body."""


def load_page() -> PageFiles:
    """Return the files of the package's folder ``page`` by path: ``/``, and below ``/page/``."""
    page: PageFiles = {}
    for path, file in _walk(files("bargein.bridge").joinpath("page"), "/page"):
        kind = CONTENT_TYPES.get(path.rpartition(".")[2])
        if kind is not None:
            page[path] = (kind, file.read_bytes())
    if "/page/index.html" in page:
        page["/"] = page["/page/index.html"]
    return page


def _walk(folder: Traversable, path: str) -> Iterator[tuple[str, Traversable]]:
    if not folder.is_dir():
        return
    for entry in folder.iterdir():
        below = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _walk(entry, below)
        else:
            yield below, entry


@final
class HttpGate:
    """Answers every HTTP request, and passes on those that may open a call.

    The checks, in order: path and method, Host, bearer token, Origin, room for a call.
    """

    def __init__(
        self,
        metrics: Metrics,
        room: Callable[[], ErrorCode | None],
        access: Access,
        *,
        page: PageFiles | None = None,
        is_encrypted: bool = False,
    ) -> None:
        """Keep what requests are checked against.

        Args:
            metrics: The server's counts.
            room: Returns why no call can be opened now; ``None`` if one can.
            access: Who may reach the server, under which names, and with which token.
            page: The files to serve; ``None`` loads those of the package.
            is_encrypted: Whether this server itself speaks TLS.
        """
        self._metrics = metrics
        self._room = room
        self._access = access
        self._origin_check = OriginCheck(access)
        self._is_encrypted = is_encrypted
        self._page = load_page() if page is None else page

    def secure(self, request: HttpRequest, response: Response) -> None:
        """Add the security headers to a response, including that of a handshake."""
        host = header_of(request.headers, "Host")
        policy = CONTENT_POLICY.format(calls=" ".join(_calls_of(host)))
        headers = [("Content-Security-Policy", policy), *SECURITY_HEADERS]
        if self._is_encrypted and not self._origin_check.is_local(host):
            headers.append(("Strict-Transport-Security", f"max-age={HSTS_S}"))
        for name, value in headers:
            if name not in response.headers:
                response.headers[name] = value

    def answer(self, request: HttpRequest) -> Response | None:
        """Return the response; ``None`` continues with the WebSocket handshake."""
        path = request.path.partition("?")[0]
        if path not in (CALL_PATH, WATCH_PATH, "/healthz", "/metrics") and path not in self._page:
            return _text(HTTPStatus.NOT_FOUND, "not found")
        if request.method not in ("GET", "HEAD"):
            response = _text(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD")
            response.headers["Allow"] = "GET, HEAD"
            return response
        if path == "/healthz":
            return self._health()
        if not self._origin_check.knows_host(request.headers):
            return self.reject(
                HTTPStatus.FORBIDDEN, "forbidden", "unknown Host; name it with --host-name"
            )
        if path in self._page:
            return http_response(HTTPStatus.OK, *self._page[path])
        if not self._may_ask_for(path, request):
            return self.unauthorized()
        if path == "/metrics":
            return http_response(HTTPStatus.OK, CONTENT_TYPE, self._metrics.exposition().encode())
        if path == WATCH_PATH:
            return self._accept_operator(request)
        return self._admit(request)

    def _may_ask_for(self, path: str, request: HttpRequest) -> bool:
        given = token_of(request)
        if path == "/metrics":
            return self._access.may_read_metrics(given)
        # The call's own token says which call is resumed; a signed one may have expired by now.
        resumes = path == CALL_PATH and wants_resume(request)
        return self._access.identify(given, may_have_expired=resumes) is not None

    def _health(self) -> Response:
        if self._room() == "draining":
            return _text(HTTPStatus.SERVICE_UNAVAILABLE, "draining")
        return _text(HTTPStatus.OK, "ok")

    def _accept_operator(self, request: HttpRequest) -> Response | None:
        bearer = self._access.identify(token_of(request))
        if bearer is None or "operator" not in bearer.identity.rights:
            return self.reject(
                HTTPStatus.FORBIDDEN, "forbidden", "/watch needs a signed token with 'operator'"
            )
        return self._refuse_origin(request)

    def _refuse_origin(self, request: HttpRequest) -> Response | None:
        if self._origin_check.allows(request.headers):
            return None
        text = "this Origin may not call; see origins="
        return self.reject(HTTPStatus.FORBIDDEN, "forbidden", text)

    def _admit(self, request: HttpRequest) -> Response | None:
        refused = self._refuse_origin(request)
        if refused is not None:
            return refused
        query = _query(request)
        if query.get("mode", "audio") not in ("audio", "text"):
            return self.reject(HTTPStatus.BAD_REQUEST, "bad_message", "mode is audio or text")
        try:
            if "conversation" in query:
                check_conversation(query["conversation"])
        except ValueError as error:
            return self.reject(HTTPStatus.BAD_REQUEST, "conversation_refused", str(error))
        # A resumed call has its room already.
        why_not = self._room() if "resume" not in query or self._room() == "draining" else None
        if why_not is not None:
            response = self.reject(HTTPStatus.SERVICE_UNAVAILABLE, why_not, "no room for a call")
            response.headers["Retry-After"] = "5"
            return response
        return None

    def unauthorized(self) -> Response:
        """Return the response to a wrong token, and count it."""
        response = self.reject(HTTPStatus.UNAUTHORIZED, "unauthorized", "wrong or no token")
        response.headers["WWW-Authenticate"] = "Bearer"
        return response

    def reject(self, status: HTTPStatus, code: ErrorCode, text: str) -> Response:
        """Return the response that refuses a call, and count it."""
        self._metrics.rejected[code] += 1
        return self.refusal(status, code, text)

    @staticmethod
    def refusal(status: HTTPStatus, code: ErrorCode, text: str) -> Response:
        """Return the response that refuses a call."""
        body = encode(ErrorMessage(code=code, message=text))
        assert isinstance(body, str)  # only audio is binary
        return http_response(status, "application/json", body.encode())


def wants_to_watch(request: HttpRequest) -> bool:
    """Whether a request that passed the gate is an operator's."""
    return request.path.partition("?")[0] == WATCH_PATH


def wants_resume(request: HttpRequest) -> bool:
    """Whether a client wants to resume a call."""
    return "resume" in _query(request)


def token_of(request: HttpRequest) -> str:
    """Return the bearer token of a request, from its header or its query; empty for none."""
    scheme, _, given = header_of(request.headers, "Authorization").partition(" ")
    if scheme.lower() != "bearer":
        # A browser cannot set a header on a WebSocket.
        given = _query(request).get("token", "")
    return given.strip()


def call_request(
    request: HttpRequest, peer: str, bearer: Bearer | None = None, *, secure: bool = False
) -> CallRequest:
    """Return a client's request for a call, as the app gets it.

    Args:
        request: Its handshake, which passed the gate.
        peer: Its address.
        bearer: Who it is, according to its token.
        secure: Whether its connection is encrypted.
    """
    query = _query(request)
    identity, expires_s = bearer or Bearer(Identity())
    headers: dict[str, str] = {}
    for name, value in request.headers.raw_items():
        known = headers.get(name.lower())
        headers[name.lower()] = value if known is None else f"{known}, {value}"
    return CallRequest(
        mode="text" if query.get("mode") == "text" else "audio",
        conversation=query.get("conversation"),
        headers=MappingProxyType(headers),
        query=MappingProxyType(query),
        peer=peer,
        token=token_of(request),
        identity=identity,
        secure=secure,
        token_expires_s=expires_s,
    )


def peer_of(stream: trio.abc.AsyncResource) -> str:
    """Return the address of the other end; empty for none."""
    if isinstance(stream, trio.SSLStream):
        stream = stream.transport_stream
    if not isinstance(stream, trio.SocketStream):
        return ""
    try:
        name = stream.socket.getpeername()
    except OSError:
        return ""  # the other end is gone
    return str(name[0]) if isinstance(name, tuple) else str(name or "")


def _query(request: HttpRequest) -> dict[str, str]:
    found = parse_qs(request.path.partition("?")[2], keep_blank_values=True)
    return {name: values[0] for name, values in found.items()}


def _calls_of(host: str) -> Iterator[str]:
    """Yield the addresses that this server's page may connect to."""
    yield "'self'"
    # Not in every browser does 'self' include this host's WebSockets (CSP3, section 6.7.2.8).
    if _HOST.fullmatch(host):
        yield f"ws://{host}"
        yield f"wss://{host}"


def _text(status: HTTPStatus, text: str) -> Response:
    return http_response(status, "text/plain; charset=utf-8", text.encode() + b"\n")
