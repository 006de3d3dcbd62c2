"""Twilio's Media Streams: sound travels, both ways, and your own ears and voice are used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, final

from .._signals import Signals
from . import _twiml
from ._media_codec import JsonMediaCodec, JsonNames, MediaDialect
from ._media_door import MediaDoor
from .carrier_account import CarrierAccount
from .twilio import ENDED_PATH, VOICE_PATH, TwilioRules

if TYPE_CHECKING:
    from ..._app import SpeechStack

SOCKET_PATH = "/twilio/media/"

DIALECT = MediaDialect(carrier="Twilio")
"""Source: Twilio's page "Media Streams - WebSocket Messages"."""

NAMES = JsonNames()


@final
class TwilioMedia(MediaDoor):
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
            ValueError: `public_url` is no address of a server.
        """
        super().__init__(
            TwilioRules(auth_token, signing_keys),
            _twiml.stream,
            lambda: JsonMediaCodec(DIALECT, NAMES),
            speech=speech,
            public_url=public_url,
            calls_per_number=calls_per_number,
            account=account,
        )
