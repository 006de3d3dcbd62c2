"""Telephone numbers of Exotel, whose flows are set in its dashboard."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bargein.bridge import SpeechStack
from bargein.bridge.audio.errors import need
from bargein.bridge.validation.arguments import check_has
from bargein.bridge.validation.public_url import checked_public_url
from bargein.bridge.wires import Wire
from bargein.bridge.wires.telephone import ExotelMedia
from bargein.bridge.wires.telephone.exotel import (
    EXOTEL_SECRET_VARIABLE,
    USER,
    VOICE_PATH,
    ExotelRate,
)
from bargein.nodes.services._phone_account import PhoneNumberError, credentials

__all__ = ["Exotel"]


class Exotel:
    """Exotel's Voicebot, which connects your agent; for ``App(phone=)``.

    Sound travels: your app hears and speaks.
    """

    def __init__(
        self,
        *,
        speech: SpeechStack | None = None,
        secret: str | None = None,
        rate_hz: ExotelRate = 8_000,
        calls_per_number: int | None = 3,
    ) -> None:
        """Keep the secret; nothing is asked of Exotel.

        Args:
            speech: The ears and the voice of its calls; ``None`` for the app's.
            secret: The password in the address of the webhook; ``None`` reads
                EXOTEL_WEBHOOK_SECRET.
            rate_hz: The sample rate of the stream: at 8 kHz a cut is exact to 200 ms, above to 100.
            calls_per_number: How many calls one number may have at a time; ``None`` for no limit.

        Raises:
            SpeechExtraError: numpy is not installed (extra ``phone``).
            TypeError: `speech` cannot hear and speak.
            ValueError: The secret is missing.
        """
        check_has("Exotel(speech=)", speech, "open attach", example="Speech(ear=…, voice=…)")
        need("Exotel()", "numpy", "phone")
        self.speech = speech
        (self._secret,) = credentials(
            "Exotel()",
            {EXOTEL_SECRET_VARIABLE: ("secret=", secret or os.environ.get(EXOTEL_SECRET_VARIABLE))},
            "choose one, for example by: openssl rand -hex 16",
        )
        self._rate_hz: ExotelRate = rate_hz
        self._calls_per_number = calls_per_number

    def wires(self, public_url: str | None) -> Sequence[Wire]:
        """Return the wires of this account, for a server's port.

        Args:
            public_url: The address by which Exotel reaches the server; ``None`` takes it from the
                ``Host`` of each request.

        Raises:
            ValueError: It is no address of a server.
        """
        media = ExotelMedia(
            speech=self.speech,
            secret=self._secret,
            public_url=public_url,
            rate_hz=self._rate_hz,
            calls_per_number=self._calls_per_number,
        )
        return (media,)

    async def claim(self, number: str, public_url: str) -> str:
        """Say what to set in Exotel's dashboard: no request changes the applets of a flow.

        Args:
            number: The number.
            public_url: The address by which Exotel reaches the server.

        Raises:
            PhoneNumberError: Always, with what to set.
            ValueError: `public_url` is no address of a server.
        """
        host = checked_public_url(public_url).partition("://")[2]
        raise PhoneNumberError(
            f"Exotel's numbers are set in its dashboard: give {number} a flow with the applet "
            f"Voicebot, whose URL is https://{USER}:${EXOTEL_SECRET_VARIABLE}@{host}{VOICE_PATH}, "
            "and leave out --number"
        )

    async def restore(self, number: str) -> str:
        """Say that there is nothing to put back.

        Args:
            number: The number.

        Raises:
            PhoneNumberError: Always.
        """
        raise PhoneNumberError(f"{number} is set in Exotel's dashboard, where it can be set back")

    def __repr__(self) -> str:
        return f"Exotel(rate_hz={self._rate_hz})"
