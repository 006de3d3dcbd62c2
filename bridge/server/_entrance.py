"""From an HTTP request to a call: the gate decides, then the app."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, final

import structlog
import trio
from websockets.http11 import Response

from .._call_request import CallRequest, Refusal
from ..websocket import HttpRequest
from ._access import Access
from ._http import Gate, call_request, token_of, wants_resume, wants_to_watch

if TYPE_CHECKING:
    from .. import App

ADMIT_S = 5.0
"""How long an app may take to decide about a call: half of what a client has for its handshake."""

MAX_REASON_CHARS = 200

log = structlog.get_logger()


@final
class Entrance:
    """Lets connections in, one ``Visit`` each."""

    def __init__(self, app: App, gate: Gate, access: Access) -> None:
        """Keep who decides.

        Args:
            app: Asked about each call that the gate lets through.
            gate: Answers everything else.
            access: Tells who a caller is by its token.
        """
        self._app = app
        self.gate = gate
        self.access = access

    def visit(self, peer: str, *, secure: bool) -> Visit:
        """Begin with a connection.

        Args:
            peer: The address of the other end of the socket.
            secure: Whether the socket is encrypted.
        """
        return Visit(self, peer, secure)

    async def ask_app(self, asked: CallRequest) -> CallRequest | Response:
        """Return the request with whom the app took the caller for, or the answer that refuses it.

        Cancelling it is safe.
        """
        try:
            with trio.move_on_after(ADMIT_S):
                verdict = await self._app.admits(asked)
                if not isinstance(verdict, Refusal):
                    return verdict
                reason = verdict.reason[:MAX_REASON_CHARS]
                return self.gate.reject(HTTPStatus.FORBIDDEN, "forbidden", reason)
            log.error("admit_took_too_long", limit_s=ADMIT_S)
        except (Exception, SystemExit, GeneratorExit):  # whatever the app's code raises
            log.exception("admit_failed")
        return self.gate.reject(
            HTTPStatus.SERVICE_UNAVAILABLE, "agent_error", "the app could not decide about the call"
        )


@final
class Visit:
    """One connection on its way in.

    Attributes:
        call: How it asked for a call; None before it was let in, and for one that resumes.
    """

    def __init__(self, entrance: Entrance, peer: str, secure: bool) -> None:
        self.call: CallRequest | None = None
        self._entrance = entrance
        self._peer = peer
        self._secure = secure

    async def answer(self, request: HttpRequest) -> Response | None:
        """Return the answer, or None to go on with the WebSocket handshake."""
        response = self._entrance.gate.answer(request)
        if response is not None or wants_resume(request) or wants_to_watch(request):
            return response
        identity = self._entrance.access.identify(token_of(request))
        asked = call_request(request, self._peer, identity, secure=self._secure)
        verdict = await self._entrance.ask_app(asked)
        if isinstance(verdict, Response):
            return verdict
        self.call = verdict
        return None
