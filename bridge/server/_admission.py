"""From an HTTP request to a call: first the gate decides, then the app."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, final

import trio
from websockets.http11 import Response

from bargein.routes.logs import get_logger

from .._call_request import CallRequest, Refusal
from ..websocket import HttpRequest
from ._access import Access, Bearer
from ._connections_per_address import UNNAMED, Addresses, key_of
from ._http import (
    HttpGate,
    call_request,
    token_of,
    wants_resume,
    wants_to_watch,
)
from ._proxies import TrustedProxies

if TYPE_CHECKING:
    from .. import App

ADMIT_S = 5.0
"""How many seconds an app may take to decide about a call: half the time for a handshake."""

WRONG_TOKEN_DELAY_S = 1.0
"""How many seconds the response to a wrong token is delayed, as by sshd and PAM (2 s)."""

MAX_REASON_CHARS = 200

log = get_logger()


@final
class Admission:
    """Admits connections, with one ``PendingConnection`` for each."""

    def __init__(
        self,
        app: App,
        gate: HttpGate,
        access: Access,
        addresses: Addresses,
        proxies: TrustedProxies,
    ) -> None:
        """Keep the parts that decide."""
        self._app = app
        self.gate = gate
        self.access = access
        self.addresses = addresses
        self.proxies = proxies

    def pending(self, peer: str, *, secure: bool) -> PendingConnection:
        """Start with a connection.

        Args:
            peer: The address of the other end of the socket.
            secure: Whether the socket is encrypted.
        """
        return PendingConnection(self, peer, secure)

    async def ask_app(self, asked: CallRequest) -> CallRequest | Response:
        """Return the request with the identity that the app gave the caller, or the refusal.

        Cancelling this is safe.
        """
        try:
            with trio.move_on_after(ADMIT_S):
                verdict = await self._app.admits(asked)
                if not isinstance(verdict, Refusal):
                    return verdict
                reason = verdict.reason[:MAX_REASON_CHARS]
                return self.gate.reject(HTTPStatus.FORBIDDEN, "forbidden", reason)
            log.error("admit_took_too_long", limit_s=ADMIT_S)
        except Exception:  # whatever the app's code raises
            log.exception("admit_failed")
        return self.gate.reject(
            HTTPStatus.SERVICE_UNAVAILABLE, "agent_error", "the app could not decide about the call"
        )


@final
class PendingConnection:
    """One connection before it has a call.

    Attributes:
        call: Its request for a call; ``None`` before it is admitted, and if it resumes a call.
        bearer: Who sent the request, once it was admitted to watch.
        address: As what address it is counted, once its request was read; ``None`` for as none.
    """

    def __init__(self, admission: Admission, peer: str, secure: bool) -> None:
        self.call: CallRequest | None = None
        self.bearer: Bearer | None = None
        self.address = key_of(peer)
        self._admission = admission
        self._socket_peer = peer
        self._secure = secure
        # Behind a proxy, only the request tells whose connection it is.
        self._is_counted = not admission.proxies.trusts(peer)
        self._is_silent = False

    def wait(self) -> bool:
        """Count it among the connections without a request, until ``asks()``.

        Returns:
            False if too many of its address wait already; then it is not counted.
        """
        addresses = self._admission.addresses
        if not self._is_counted:
            return True
        self._is_silent = addresses.has_room(key_of(self._socket_peer), "silent")
        if self._is_silent:
            addresses.reserve(key_of(self._socket_peer), "silent")
        return self._is_silent

    def asks(self) -> None:
        """Stop counting it, because the request has arrived or never will; harmless if repeated."""
        if self._is_silent:
            self._is_silent = False
            self._admission.addresses.give_back(key_of(self._socket_peer), "silent")

    async def answer(self, request: HttpRequest) -> Response | None:
        """Return the response; ``None`` continues with the WebSocket handshake."""
        self.asks()
        admission = self._admission
        caller = admission.proxies.trace(self._socket_peer, self._secure, request.headers)
        self.address = key_of(caller.peer) if caller.is_named else UNNAMED
        response = admission.gate.answer(request)
        if response is not None and response.status_code == HTTPStatus.UNAUTHORIZED:
            return await self._answer_late(response)
        if response is not None or (wants_resume(request) and not wants_to_watch(request)):
            return response  # resuming a call uses up no budget that others could empty
        if not admission.addresses.may_knock(self.address):
            return self._too_many("too many connections from your address")
        bearer = admission.access.identify(token_of(request))
        if bearer is None:  # it has expired since the gate looked
            return await self._answer_late(admission.gate.unauthorized())
        if wants_to_watch(request):
            self.bearer = bearer
            return None
        if not admission.addresses.has_room(self.address, "calls"):
            return self._too_many("too many calls from your address")
        asked = call_request(request, caller.peer, bearer, secure=caller.secure)
        verdict = await admission.ask_app(asked)
        if isinstance(verdict, Response):
            return verdict
        self.call = verdict
        return None

    async def _answer_late(self, wrong_token: Response) -> Response:
        """Delay the response to a wrong token; a right one is never delayed or refused for it."""
        with self._admission.addresses.answer_late(self.address) as may_wait:
            if may_wait:
                await trio.sleep(WRONG_TOKEN_DELAY_S)
                return wrong_token
        text = "too many wrong tokens from your address"
        return _later(HttpGate.refusal(HTTPStatus.TOO_MANY_REQUESTS, "rate_limited", text))

    def _too_many(self, text: str) -> Response:
        gate = self._admission.gate
        return _later(gate.reject(HTTPStatus.TOO_MANY_REQUESTS, "rate_limited", text))


def _later(response: Response) -> Response:
    response.headers["Retry-After"] = "10"
    return response
