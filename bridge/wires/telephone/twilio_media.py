"""Twilio's Media Streams: sound travels, both ways, and your own ears and voice are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, final

import trio
from websockets.http11 import Response

from ...websocket import HttpRequest
from .._signals import Signals
from .._wire import HostedCall, NewCall, Session, WireConnection
from . import _twiml
from ._call_tokens import EXPIRES_S, AnnouncedCall
from ._carrier_door import CarrierDoor
from ._line_sound import resampler_from
from ._media_codec import JsonMediaCodec, JsonNames, MediaDialect
from ._media_session import media_session
from .carrier_account import CarrierAccount
from .twilio import ENDED_PATH, VOICE_PATH, TwilioRules

if TYPE_CHECKING:
    from ..._app import SpeechStack

SOCKET_PATH = "/twilio/media/"

DIALECT = MediaDialect(carrier="Twilio")
"""Source: Twilio's page "Media Streams - WebSocket Messages"."""

NAMES = JsonNames()


@final
class TwilioMedia(CarrierDoor):
    """Calls of Twilio numbers whose sound travels: your app hears and speaks."""

    name = "twilio-media"
    paths = (SOCKET_PATH,)
    webhooks = (VOICE_PATH, ENDED_PATH)
    signals = Signals(
        caller_rate_hz=8_000, agent_rate_hz=8_000, knows_played=True, carries_dtmf=True
    )

    def __init__(
        self,
        *,
        speech: SpeechStack | None = None,
        auth_token: str | None = None,
        public_url: str | None = None,
        signing_keys: Mapping[str, str] | None = None,
        calls_per_number: int | None = 3,
        account: CarrierAccount | None = None,
    ) -> None:
        """Keep the secrets; nothing is asked of Twilio.

        Args:
            speech: The ears and the voice of its calls, which the app has opened; ``None`` for the
                app's own.
            auth_token: The account's token, with which Twilio signs; ``None`` takes it from
                ``TWILIO_AUTH_TOKEN``.  Without one, every request is refused.
            public_url: The address by which Twilio reaches this server, such as
                ``https://voice.example.com``; ``None`` takes it from each request, whose signature
                says that it is right.
            signing_keys: Secrets of keys with which Twilio signs by SHA-256, by their ids.
            calls_per_number: How many calls one number may have at a time; ``None`` for no limit.
            account: What the account does with calls by REST; ``None`` for nothing.

        Raises:
            SpeechExtraError: numpy is not installed (extra ``phone``).
            ValueError: `public_url` is no address of a server.
        """
        super().__init__(
            TwilioRules(auth_token, signing_keys),
            _twiml.stream,
            mode="audio",
            public_url=public_url,
            calls_per_number=calls_per_number,
            account=account,
        )
        resampler_from(DIALECT.sound.rate_hz)  # what it imports takes too long within a call
        self._speech = speech
        self._transfers: dict[str, tuple[str, float]] = {}

    def answer(self, request: HttpRequest) -> NewCall | Response:
        """Announce a call, say what comes after it, or let its socket open.

        Raises:
            RequestRefusedError: The request is none of Twilio's.
        """
        answered = super().answer(request)
        if request.route != ENDED_PATH:
            return answered
        # A stream hands nothing on, so the target was kept here.
        call = _twiml.form_fields(request).get("CallSid", "")
        target, expires_s = self._transfers.pop(call, ("", 0.0))
        is_wanted = target and expires_s > trio.current_time()
        return _twiml.dial(target) if is_wanted else _twiml.hang_up()

    def session(self, connection: WireConnection, call: HostedCall) -> Session:
        """Return the session of a call."""
        codec = JsonMediaCodec(DIALECT, NAMES)
        return media_session(connection, call, codec, self.redeem, self._over, self._speech)

    def _over(self, call: AnnouncedCall, target: str | None) -> None:
        self.release(call)
        now_s = trio.current_time()
        kept = self._transfers.items()
        self._transfers = {key: told for key, told in kept if told[1] > now_s}
        if target:
            self._transfers[call.call] = (target, now_s + EXPIRES_S)
