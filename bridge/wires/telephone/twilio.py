"""Twilio's ConversationRelay: its paths, its signatures, and what its protocol has of its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NoReturn, final
from urllib.parse import urlsplit

from pydantic_core import from_json
from websockets.http11 import Response

from bargein.routes.logs import get_logger

from ..._call_request import Identity
from ...validation.public_url import checked_public_url
from ...websocket import HttpRequest
from .._signals import Signals
from .._wire import HostedCall, NewCall, RequestRefusedError, WireConnection
from . import _twiml
from ._call_tokens import AnnouncedCall, AnnouncedCalls
from ._relay_codec import Opened, RelayCodec, RelayDialect
from ._relay_session import REFUSED, RelaySession
from .signatures import Algorithm, form_of, header_of, is_signed

AUTH_TOKEN_VARIABLE = "TWILIO_AUTH_TOKEN"  # the name of a variable, not a token
VOICE_PATH = "/twilio/voice"
ENDED_PATH = "/twilio/ended"
SOCKET_PATH = "/twilio/relay/"

DIALECT = RelayDialect("Twilio")

ATTRIBUTES: Mapping[str, str] = {
    # A key stops what the agent's chains say that it stops, so Twilio only tells of it.
    "interruptible": "speech",
    "reportInputDuringAgentSpeech": "dtmf",
    "dtmfDetection": "true",
    "ignoreBackchannel": "true",
    "events": "speaker-events tokens-played",
}
"""The attributes of ``<ConversationRelay>`` unless the developer sets others: which sounds
interrupt, and that Twilio tells what it has spoken."""

_SIGNATURE = "X-Twilio-Signature"
_SETTINGS = "X-Twilio-Webhooks-Signature-Settings"
"""Names the key and the hash of a signature, if they are not the account's token and SHA-1."""

log = get_logger()


@final
class TwilioRelay:
    """Calls of Twilio numbers; Twilio hears and speaks, and text travels."""

    name = "twilio"
    paths = (SOCKET_PATH,)
    webhooks = (VOICE_PATH, ENDED_PATH)
    signals = Signals(carries_audio=False, knows_played=True, carries_dtmf=True)

    def __init__(
        self,
        *,
        auth_token: str | None = None,
        public_url: str | None = None,
        attributes: Mapping[str, str] | None = None,
        signing_keys: Mapping[str, str] | None = None,
        calls_per_number: int | None = 3,
    ) -> None:
        """Keep the secrets; nothing is asked of Twilio.

        Args:
            auth_token: The account's token, with which Twilio signs; ``None`` takes it from
                ``TWILIO_AUTH_TOKEN``.  Without one, every request is refused.
            public_url: The address by which Twilio reaches this server, such as
                ``https://voice.example.com``; ``None`` takes it from each request, whose signature
                says that it is right.
            attributes: Attributes of ``<ConversationRelay>``, such as ``voice`` and ``language``;
                they come beside ours, or in their place.
            signing_keys: Secrets of keys with which Twilio signs by SHA-256, by their ids.
            calls_per_number: How many calls one number may have at a time; ``None`` for no limit.

        Raises:
            ValueError: `public_url` is no address of a server.
        """
        self._auth_token = auth_token or os.environ.get(AUTH_TOKEN_VARIABLE) or ""
        self._public_url = None if public_url is None else checked_public_url(public_url)
        self._attributes = {**ATTRIBUTES, **(attributes or {})}
        self._signing_keys = dict(signing_keys or {})
        self._calls = AnnouncedCalls(calls_per_number)

    # --- who asks -------------------------------------------------------------------------------

    def identify(self, request: HttpRequest) -> Identity | None:
        """Return whose call a request is of, if Twilio has signed it.

        Raises:
            RequestRefusedError: The signature is wrong, or the socket was not announced.
        """
        if _SIGNATURE not in request.headers:
            return None
        self._check_signature(request, header_of(request, _SIGNATURE))
        if not request.route.startswith(SOCKET_PATH):
            return Identity("twilio")
        return Identity(self._announced(request).caller)

    def _check_signature(self, request: HttpRequest, signature: str) -> None:
        key, algorithm = self._key_of(request)
        is_socket = request.route.startswith(SOCKET_PATH)

        def fits(base: str) -> bool:
            url = (_socket_url(base) if is_socket else base) + request.path
            return is_signed(request, signature, key, url, algorithm)

        expected = self._base(request)
        if fits(expected):
            return
        for host in (header_of(request, "Host"), urlsplit(expected).netloc):
            for asked in (f"http://{host}", f"https://{host}"):
                if fits(asked):
                    self._refuse(
                        f"Twilio asked for {request.route} at {asked}, expected {expected}: set "
                        "--public-url to the address that Twilio calls, which begins with https"
                    )
        self._refuse(
            f"the signature of {request.route} is not that of {expected}{request.route} with this "
            f"account's token: is {AUTH_TOKEN_VARIABLE} that of the account that has the number, "
            "and --public-url the address that Twilio calls?"
        )

    def _base(self, request: HttpRequest) -> str:
        """Return the address of the server as Twilio knows it, without a slash at the end."""
        return self._public_url or f"https://{header_of(request, 'Host')}"

    def _key_of(self, request: HttpRequest) -> tuple[str, Algorithm]:
        pairs: dict[str, str] = {}
        for part in header_of(request, _SETTINGS).split(","):
            name, _, value = part.strip().partition("=")
            pairs[name] = value
        if pairs.get("algorithm") == "HMAC_SHA256":
            key = self._signing_keys.get(pairs.get("key", ""))
            if key is None:
                self._refuse("Twilio signs with a key that is not in signing_keys=")
            return key, "sha256"
        if not self._auth_token:
            self._refuse(f"{AUTH_TOKEN_VARIABLE} is not set, so that no signature can be checked")
        return self._auth_token, "sha1"

    @staticmethod
    def _refuse(text: str) -> NoReturn:
        log.warning("carrier_refused", why=text)
        raise RequestRefusedError("forbidden", text, REFUSED)

    def _announced(self, request: HttpRequest) -> AnnouncedCall:
        announced = self._calls.find(request.route.removeprefix(SOCKET_PATH))
        if announced is None:
            self._refuse(f"no call was announced for this socket by {VOICE_PATH}, or not lately")
        return announced

    # --- webhooks and sockets -------------------------------------------------------------------

    def answer(self, request: HttpRequest) -> NewCall | Response:
        """Announce a call, say what comes after it, or let its socket open.

        Raises:
            RequestRefusedError: The request is none of Twilio's.
        """
        if _SIGNATURE not in request.headers:  # it came with a token of the server
            self._refuse(f"{request.route} is for Twilio, which signs its requests")
        if request.route.startswith(SOCKET_PATH):
            self._announced(request).mark_connected()
            return NewCall(mode="text")
        form = {name: values[0] for name, values in form_of(request).items()} or request.query
        if request.route == ENDED_PATH:
            return _after(form.get("HandoffData", ""))
        call = form.get("CallSid", "")
        if not call:
            self._refuse(f"{VOICE_PATH} was called without CallSid")
        announced = self._calls.announce(call, form.get("From", ""), form.get("To", ""))
        if announced is None:
            log.warning("calls_per_number", pii_number=form.get("From", ""))
            return _twiml.busy()
        base = self._base(request)
        return _twiml.relay(
            f"{_socket_url(base)}{SOCKET_PATH}{announced.key}",
            base + ENDED_PATH,
            announced.token,
            self._attributes,
        )

    def session(self, connection: WireConnection, call: HostedCall) -> RelaySession:
        """Return the session of a call."""
        return RelaySession(connection, call, RelayCodec(DIALECT), self._redeem, self._calls.close)

    def _redeem(self, opened: Opened) -> AnnouncedCall:
        announced = self._calls.redeem(opened.call, opened.parameters.get("token", ""))
        if announced is None:
            raise RequestRefusedError("unauthorized", "the token of setup is not good, or was used")
        return announced


def _socket_url(base: str) -> str:
    return "ws" + base.removeprefix("http")


def _after(handoff: str) -> Response:
    """Return what comes after the relay: the transfer that the agent asked for, or nothing."""
    try:
        wanted = from_json(handoff) if handoff else {}
    except ValueError:
        wanted = {}
    target = wanted.get("transfer") if isinstance(wanted, dict) else None
    return _twiml.dial(target) if isinstance(target, str) and target else _twiml.hang_up()
