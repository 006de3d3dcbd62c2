"""The carriers that tests and ``bargein phone`` can play, each with its wire: one line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

from bargein.bridge import SpeechStack

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
