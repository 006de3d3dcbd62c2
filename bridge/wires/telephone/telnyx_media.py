"""Telnyx' media streams: sound travels, both ways, and your own ears and voice are used.

Sources: Telnyx' pages "Stream call media over WebSocket" and on the TeXML verb ``<Stream>``, whose
codecs are PCMU and PCMA; its order of L16's bytes is in neither.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, final

from .._signals import Signals
from . import _twiml
from ._media_codec import JsonMediaCodec, JsonNames, LineFormat, MediaDialect
from ._media_door import MediaDoor
from .carrier_account import CarrierAccount
from .telnyx import ENDED_PATH, VOICE_PATH, TelnyxRules

if TYPE_CHECKING:
    from ..._app import SpeechStack

SOCKET_PATH = "/telnyx/media/"

TelnyxCodec = Literal["PCMU", "PCMA"]
"""How sound is coded: PCMU is usual in North America and Japan, PCMA elsewhere."""

DIALECT = MediaDialect(carrier="Telnyx", longest_piece_ms=1_000, keeps_order=False)

NAMES = JsonNames(
    stream="stream_id",
    needs_stream=False,
    call_ids=("call_control_id",),
    account="user_id",
    parameters="custom_parameters",
    format="media_format",
    rate="sample_rate",
)


@final
class TelnyxMedia(MediaDoor):
    """Calls of Telnyx numbers whose sound travels: your app hears and speaks."""

    name = "telnyx-media"
    paths = (SOCKET_PATH,)
    webhooks = (VOICE_PATH, ENDED_PATH)
    signals = Signals(
        caller_rate_hz=8_000, agent_rate_hz=8_000, knows_played=True, carries_dtmf=True
    )

    def __init__(
        self,
        *,
        speech: SpeechStack | None = None,
        public_key: str | None = None,
        public_url: str | None = None,
        codec: TelnyxCodec = "PCMU",
        calls_per_number: int | None = 3,
        account: CarrierAccount | None = None,
    ) -> None:
        """Keep the key; nothing is asked of Telnyx.

        Args:
            speech: The ears and the voice of its calls, which the app has opened; ``None`` for the
                app's own.
            public_key: The account's public key, with which Telnyx' signatures are checked;
                ``None`` takes it from ``TELNYX_PUBLIC_KEY``.  Without one, every request is
                refused.
            public_url: The address by which Telnyx reaches this server, such as
                ``https://voice.example.com``; ``None`` takes it from the ``Host`` of each request.
            codec: How sound is coded, both ways.
            calls_per_number: How many calls one number may have at a time; ``None`` for no limit.
            account: What the account does with calls by REST; ``None`` for nothing.

        Raises:
            ValueError: `public_url` is no address of a server.
        """
        # Without the mode "rtp", Telnyx takes MP3 alone, and one message a second.
        asked = {"bidirectionalMode": "rtp", "bidirectionalCodec": codec, "codec": codec}
        sound = LineFormat("a_law" if codec == "PCMA" else "mu_law")
        super().__init__(
            TelnyxRules(public_key),
            partial(_twiml.stream, attributes=asked),
            lambda: JsonMediaCodec(DIALECT.of(sound), NAMES),
            speech=speech,
            public_url=public_url,
            calls_per_number=calls_per_number,
            account=account,
        )
