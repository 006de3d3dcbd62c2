"""The carriers that tests and ``bargein phone`` can play, each with its wire: one line each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from bargein.bridge import App, SpeechStack
from bargein.routes import BargeinError

from ..exotel.fake import FakeExotel
from ..exotel.phone import Exotel
from ..plivo.fake import FakePlivo
from ..plivo.phone import Plivo
from ..telnyx.fake import FakeTelnyx
from ..telnyx.fake_media import FakeTelnyxMedia
from ..telnyx.phone import Telnyx
from ..vonage.fake import FakeVonage
from ..vonage.phone import Vonage
from .fake import FakeTwilio
from .fake_call import FakeTwilioCall
from .fake_media import FakeMediaCall
from .phone import Twilio

PlayedLine: TypeAlias = FakeTwilioCall | FakeMediaCall
"""The caller and the carrier of one call."""

WireName = Literal["twilio", "twilio-media", "telnyx", "telnyx-media", "plivo", "vonage", "exotel"]


class FakeCarrier(Protocol):
    """A carrier in memory."""

    def call(
        self, dial: Any, /, *, voice_url: str = ..., caller: str = ..., called: str = ...,
        hears: Callable[[str], None] = ...,
    ) -> AbstractAsyncContextManager[PlayedLine]:  # fmt: skip
        """Call a number, until the end of the block or of the call."""
        ...

    def transport(self) -> Any:
        """Return what carries the requests of its API; ``None`` for nothing."""
        ...


@dataclass(frozen=True, slots=True)
class PlayedCarrier:
    """A carrier, and the account by which its calls come."""

    carries: Literal["text", "sound"]
    fake: Callable[[], Any]
    """Makes an account in memory."""
    account: Callable[[Any, SpeechStack | None, Any], Any]
    """Makes the account of an app, from one in memory, the ears and the voice of its calls, and
    what carries its requests."""
    voice_path: str
    """The path of its webhook."""


def _twilio(fake: Any, speech: SpeechStack | None, transport: Any) -> Any:
    return Twilio(
        speech=speech,
        account_sid=fake.account_sid,
        auth_token=fake.auth_token,
        transport=transport,
    )


def _telnyx(fake: Any, speech: SpeechStack | None, transport: Any) -> Any:
    return Telnyx(
        speech=speech, api_key=fake.api_key, public_key=fake.public_key, transport=transport
    )


CARRIERS: Mapping[str, PlayedCarrier] = {
    "twilio": PlayedCarrier("text", FakeTwilio, _twilio, "/twilio/voice"),
    "twilio-media": PlayedCarrier(
        "sound", lambda: FakeTwilio(carries="sound"), _twilio, "/twilio/voice"
    ),
    "telnyx": PlayedCarrier("text", FakeTelnyx, _telnyx, "/telnyx/voice"),
    "telnyx-media": PlayedCarrier(
        "sound",
        FakeTelnyxMedia,
        lambda fake, speech, transport: _telnyx(fake.account, speech, transport),
        "/telnyx/voice",
    ),
    "plivo": PlayedCarrier(
        "sound",
        FakePlivo,
        lambda fake, speech, transport: Plivo(
            speech=speech,
            auth_id=fake.auth_id,
            auth_token=fake.auth_token,
            transport=transport,
        ),
        "/plivo/voice",
    ),
    "vonage": PlayedCarrier(
        "sound",
        FakeVonage,
        lambda fake, speech, transport: Vonage(
            speech=speech,
            api_key=fake.api_key,
            api_secret=fake.api_secret,
            signature_secret=fake.signature_secret,
            transport=transport,
        ),
        "/vonage/voice",
    ),
    "exotel": PlayedCarrier(
        "sound",
        FakeExotel,
        lambda fake, speech, transport: Exotel(
            speech=speech, secret=fake.secret, rate_hz=fake.rate_hz
        ),
        "/exotel/voice",
    ),
}
"""The wires of carriers, by their names."""


ACCOUNTS: Mapping[str, type[Exotel | Plivo | Telnyx | Twilio | Vonage]] = {
    "twilio": Twilio,
    "telnyx": Telnyx,
    "plivo": Plivo,
    "vonage": Vonage,
    "exotel": Exotel,
}
"""The accounts of carriers, by their names."""

STAND_INS: Mapping[str, str] = {
    "TWILIO_ACCOUNT_SID": "AC00000000000000000000000000000000",
    "TWILIO_AUTH_TOKEN": "nobody's",
    "TELNYX_API_KEY": "nobody's",
    "TELNYX_PUBLIC_KEY": "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=",
    "PLIVO_AUTH_ID": "MA00000000000000000",
    "PLIVO_AUTH_TOKEN": "nobody's",
    "VONAGE_API_KEY": "00000000",
    "VONAGE_API_SECRET": "nobody's",
    "VONAGE_SIGNATURE_SECRET": "nobody's secret of signatures, long enough",
    "EXOTEL_WEBHOOK_SECRET": "nobody's",
}
"""Credentials of nobody: an app makes its account without one, where no carrier is asked.  The key
is RFC 8032's first example."""


@contextmanager
def made_up_credentials() -> Iterator[None]:
    """Let the environment have credentials of nobody within the block, where it has none."""
    made_up = {name: value for name, value in STAND_INS.items() if name not in os.environ}
    os.environ.update(made_up)
    try:
        yield
    finally:
        for name in made_up:
            os.environ.pop(name, None)


class CarrierChoiceError(BargeinError, ValueError):
    """An app cannot be rung by the carrier that is asked for."""


def carrier_of(app: App, asked: str | None) -> tuple[PlayedCarrier, SpeechStack | None]:
    """Return the carrier by which an app is rung, and the ears and the voice of its own.

    Args:
        app: The app.
        asked: The carrier's name; ``None`` for the one of the app's account, or Twilio without.

    Raises:
        CarrierChoiceError: The account is of no carrier here, or nothing hears and speaks where
            sound travels.
    """
    phone = app.phone
    its = next((name for name, account in ACCOUNTS.items() if isinstance(phone, account)), None)
    if phone is not None and its is None and asked is None:
        raise CarrierChoiceError(
            f"App(phone={type(phone).__name__}(…)) is of no carrier that can be played here; "
            f"choose one by --carrier: {', '.join(ACCOUNTS)}"
        )
    name = asked or its or "twilio"
    speech: SpeechStack | None = getattr(phone, "speech", None)
    if f"{name}-media" in CARRIERS:
        return CARRIERS[name if speech is None else f"{name}-media"], speech
    if speech is None and app.speech is None:
        raise CarrierChoiceError(
            f"by {ACCOUNTS[name].__name__} sound travels, and this app has no ears and no voice: "
            f"give it App(…, speech=LocalSpeech()), or {ACCOUNTS[name].__name__}(speech=…)"
        )
    return CARRIERS[name], speech


def played_carrier(wire: str, asked: str) -> PlayedCarrier:
    """Return the carrier of a wire.

    Args:
        wire: The wire's name.
        asked: What asks for it, for the error.

    Raises:
        ValueError: There is no such wire.
    """
    found = CARRIERS.get(wire)
    if found is None:
        raise ValueError(f"{asked} is one of {', '.join(CARRIERS)}, not {wire!r}")
    return found
