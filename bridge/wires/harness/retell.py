"""Retell's custom model socket: an app is the model of an agent that Retell speaks for."""

from __future__ import annotations

import hmac
import os
from typing import final

from ..._call_request import Identity
from ...websocket import HttpRequest
from .._signals import Signals
from .._wire import HostedCall, NewCall, RequestRefusedError, WireConnection
from ..text._text_session import TextSession
from ._retell_transport import RetellTransport

RETELL_SECRET_VARIABLE = "BARGEIN_RETELL_SECRET"  # the name of a variable, not a secret
PATH = "/retell/"
MIN_SECRET_CHARS = 16
"""As many as a server's token needs that strangers can reach."""


@final
class RetellWire:
    """Calls of Retell agents with a custom model; Retell hears and speaks, and text travels."""

    name = "retell"
    paths = (PATH,)
    webhooks = ()
    signals = Signals(carries_audio=False, knows_played=True)

    def __init__(self, secret: str | None = None) -> None:
        """Keep the secret.

        Args:
            secret: What stands in the path between ``/retell/`` and the id of the call, which
                Retell appends to the address that it is given; ``None`` takes it from
                ``BARGEIN_RETELL_SECRET``.  Without one, callers need the server's token.

        Raises:
            ValueError: It is shorter than 16 characters, or has a slash.
        """
        self._secret = secret or os.environ.get(RETELL_SECRET_VARIABLE) or ""
        if self._secret and (len(self._secret) < MIN_SECRET_CHARS or "/" in self._secret):
            raise ValueError(
                f"RetellWire(secret=) has at least {MIN_SECRET_CHARS} characters and no slash"
            )

    def identify(self, request: HttpRequest) -> Identity | None:
        """Return Retell, if the path has the secret."""
        given, slash, _ = request.route.removeprefix(PATH).partition("/")
        is_right = hmac.compare_digest(given.encode("utf-8", "replace"), self._secret.encode())
        return Identity("retell") if self._secret and slash and is_right else None

    def answer(self, request: HttpRequest) -> NewCall:
        """Let a socket open.

        Raises:
            RequestRefusedError: The path names no call.
        """
        if not request.route.rpartition("/")[2]:
            raise RequestRefusedError("bad_message", f"the path is {PATH}… and the id of the call")
        return NewCall(mode="text")

    def session(self, connection: WireConnection, call: HostedCall) -> TextSession:
        """Return the session of a call."""
        return TextSession(connection, call, RetellTransport)

    def __repr__(self) -> str:
        return "RetellWire()"
