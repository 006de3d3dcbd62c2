"""Telephone numbers of Twilio: what answers them, set and put back by REST.

Source: Twilio's pages on the resource IncomingPhoneNumbers, API 2010-04-01.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from bargein.bridge import SpeechStack
from bargein.bridge.audio.errors import need
from bargein.bridge.validation.arguments import check_has
from bargein.bridge.validation.public_url import checked_public_url
from bargein.bridge.wires import Wire
from bargein.bridge.wires.telephone import TwilioMedia, TwilioRelay
from bargein.bridge.wires.telephone.carrier_account import WAITING_MUSIC, CarrierAccount
from bargein.bridge.wires.telephone.twilio import (
    AUTH_TOKEN_VARIABLE,
    STATUS_PATH,
    VOICE_PATH,
    detected_by,
    status_of,
)
from bargein.nodes.services import VendorError
from bargein.nodes.services._http_service import HttpService
from bargein.nodes.services._phone_account import (
    PhoneNumberError,
    basic,
    credentials,
    is_ours,
    json_fields,
    not_claimed,
    phone_service,
    url_after,
    was_before,
)
from bargein.nodes.services._phone_calls import PlacesCalls

from ._twilio_calls import TwilioCalls
from .errors import TWILIO_ERRORS

if TYPE_CHECKING:
    import httpx2

__all__ = ["Twilio"]

ACCOUNT_VARIABLE = "TWILIO_ACCOUNT_SID"
API = "https://api.twilio.com"


class Twilio(PlacesCalls):
    """A Twilio account whose numbers your agent answers; for ``App(phone=)``.

    Without ``speech=`` Twilio hears and speaks: text travels, by ConversationRelay, and your app
    needs no ears and no voice.  With it sound travels, by Media Streams.

    Attributes:
        speech: The ears and the voice of its calls; ``None`` for Twilio's.
    """

    def __init__(
        self,
        *,
        speech: SpeechStack | None = None,
        account_sid: str | None = None,
        auth_token: str | None = None,
        attributes: Mapping[str, str] | None = None,
        signing_keys: Mapping[str, str] | None = None,
        calls_per_number: int | None = 3,
        calls_at_once: int | None = 10,
        waiting_music: str = WAITING_MUSIC,
        api_url: str = API,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        """Keep the account; nothing is asked of Twilio yet.

        Args:
            speech: What hears and speaks on the telephone, such as ``Speech(ear=…, voice=…)``; the
                app opens it, beside that of its page.  ``None`` leaves both to Twilio.
            account_sid: The account; ``None`` reads TWILIO_ACCOUNT_SID.
            auth_token: Its token, with which Twilio signs what it asks; ``None`` reads
                TWILIO_AUTH_TOKEN.
            attributes: Attributes of ``<ConversationRelay>``, such as ``{"language": "de-DE"}``;
                they come beside ours, or in their place.
            signing_keys: Secrets of keys with which Twilio signs by SHA-256, by their ids.
            calls_per_number: How many calls one number may have at a time; ``None`` for no limit.
            calls_at_once: How many calls that your app places there may be at a time; ``None`` for
                no limit.
            waiting_music: What a caller hears who waits: an address; with `speech` the path of a
                WAV, or else a short tune; empty for silence.
            api_url: The address of Twilio's API.
            transport: Carries the requests instead of the network; ``None`` uses the network, with
                the proxies that the environment names.

        Raises:
            SpeechExtraError: A package that resamples sound is missing (extra ``phone``).
            OSError: The music cannot be read.
            TypeError: `speech` cannot hear and speak.
            ValueError: The account or its token is missing, or `attributes` are given although
                `speech` leaves nothing to ConversationRelay.
        """
        check_has("Twilio(speech=)", speech, "open attach", example="Speech(ear=…, voice=…)")
        if speech is not None:
            if attributes:
                raise ValueError(
                    "Twilio(attributes=) are those of ConversationRelay, by which Twilio hears and "
                    "speaks; with speech= your app does, so leave them out"
                )
            for package in ("numpy", "soxr"):
                need("Twilio(speech=)", package, "phone")
        self.speech = speech
        self._account, self._token = credentials(
            "Twilio()",
            {
                ACCOUNT_VARIABLE: ("account_sid=", account_sid or os.environ.get(ACCOUNT_VARIABLE)),
                AUTH_TOKEN_VARIABLE: (
                    "auth_token=",
                    auth_token or os.environ.get(AUTH_TOKEN_VARIABLE),
                ),
            },
            "both are on the first page of Twilio's console",
        )
        self._attributes = attributes
        self._signing_keys = signing_keys
        self._calls_per_number = calls_per_number
        self._api_url = api_url
        self._transport = transport
        self._carrier_account = CarrierAccount(
            TwilioCalls(self._service),
            calls_at_once=calls_at_once,
            voice_path=VOICE_PATH,
            status_path=STATUS_PATH,
            status_of=status_of,
            detected_by=detected_by,
            waiting_music=waiting_music,
        )

    def wires(self, public_url: str | None) -> Sequence[Wire]:
        """Return the wires of this account, for a server's port.

        Args:
            public_url: The address by which Twilio reaches the server; ``None`` takes it from each
                signed request.

        Raises:
            ValueError: It is no address of a server.
        """
        self._public_url = public_url
        if self.speech is not None:
            media = TwilioMedia(
                speech=self.speech,
                auth_token=self._token,
                public_url=public_url,
                signing_keys=self._signing_keys,
                calls_per_number=self._calls_per_number,
                account=self._carrier_account,
            )
            return (media,)
        relay = TwilioRelay(
            auth_token=self._token,
            public_url=public_url,
            attributes=self._attributes,
            signing_keys=self._signing_keys,
            calls_per_number=self._calls_per_number,
            account=self._carrier_account,
        )
        return (relay,)

    async def claim(self, number: str, public_url: str) -> str:
        """Let a number's calls come to a server, and return the voice URL that it had.

        The old one stays in the new one, as a parameter, so that ``restore()`` finds it.

        Args:
            number: The number, as +15550100.
            public_url: The address by which Twilio reaches the server.

        Raises:
            PhoneExtraError: httpx2 is not installed (extra ``phone``).
            PhoneNumberError: The account has no such number.
            ValueError: `public_url` is no address of a server.
            VendorError: Twilio refused, or cannot be reached.
        """
        base = checked_public_url(public_url)
        service = self._service()
        async with service.open():
            found = await self._find(service, number)
            before = found["voice_url"]
            was = was_before(before) if is_ours(before, VOICE_PATH) else before
            await self._set(service, found["sid"], url_after(base + VOICE_PATH, was))
        return was

    async def restore(self, number: str) -> str:
        """Give a number the voice URL back that it had before ``claim()``, and return that.

        Args:
            number: The number, as +15550100.

        Raises:
            PhoneExtraError: httpx2 is not installed (extra ``phone``).
            PhoneNumberError: The account has no such number, or it is not one that was claimed.
            VendorError: Twilio refused, or cannot be reached.
        """
        service = self._service()
        async with service.open():
            found = await self._find(service, number)
            if not is_ours(found["voice_url"], VOICE_PATH):
                raise not_claimed(number, f"its voice URL is {found['voice_url'] or 'empty'}")
            was = was_before(found["voice_url"])
            await self._set(service, found["sid"], was)
        return was

    def _service(self) -> HttpService:
        header = basic(self._account, self._token)
        return phone_service(
            "Twilio()",
            f"{self._api_url}/2010-04-01/Accounts/{quote(self._account, safe='')}",
            header,
            TWILIO_ERRORS,
            self._transport,
        )

    async def _find(self, service: HttpService, number: str) -> dict[str, str]:
        path = f"/IncomingPhoneNumbers.json?{urlencode({'PhoneNumber': number})}"
        body = await service.fetch(path, method="GET", problem="refused to list the numbers")
        listed = json_fields(TWILIO_ERRORS.vendor, body).get("incoming_phone_numbers")
        for found in listed if isinstance(listed, list) else ():
            if isinstance(found, dict) and found.get("phone_number") == number:
                return {name: str(found.get(name) or "") for name in ("sid", "voice_url")}
        raise PhoneNumberError(
            f"the Twilio account {self._account} has no number {number}; write it as in the "
            "console, such as +15550100"
        )

    @staticmethod
    async def _set(service: HttpService, sid: str, voice_url: str) -> None:
        wanted = {"VoiceUrl": voice_url, "VoiceMethod": "POST"}
        problem = "refused to set the voice URL"
        path = f"/IncomingPhoneNumbers/{quote(sid, safe='')}.json"
        body = await service.fetch(path, data=wanted, problem=problem)
        told = json_fields(TWILIO_ERRORS.vendor, body)
        if told.get("voice_url", voice_url) != voice_url:
            raise VendorError(TWILIO_ERRORS.vendor, problem, retryable=False)

    def __repr__(self) -> str:
        return f"Twilio(account_sid={self._account!r})"
