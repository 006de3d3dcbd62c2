"""One call over a media stream, from the carrier's first messages to the stream's end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ...protocol._outbox import Outbox
from ...websocket import Data
from .._wire import HostedCall, RequestRefusedError, WireConnection
from ..text._text_session import TextSession
from ._call_tokens import AnnouncedCall
from ._media_codec import MediaCodec, Preamble
from ._media_transport import MediaTransport
from ._relay_codec import Opened

if TYPE_CHECKING:
    from ..._app import SpeechStack

Release = Callable[[AnnouncedCall, str | None], None]
"""Is called with a call that is over, and the number that it is transferred to, if any."""


def media_session(
    connection: WireConnection,
    hosted: HostedCall,
    codec: MediaCodec,
    redeem: Callable[[Opened], AnnouncedCall],
    release: Release,
    speech: SpeechStack | None = None,
) -> TextSession:
    """Return the session of a call over a media stream; nothing happens before its ``run()``.

    Args:
        connection: The socket.
        hosted: The call, as the port gives it.
        codec: Reads and writes the messages; of this stream alone.
        redeem: Returns the announced call that the first message is of; raises
            ``RequestRefusedError``.
        release: Called with it when it is over.
        speech: The ears and the voice of the call; ``None`` for the app's.
    """
    transports: list[MediaTransport] = []

    def new_transport(outbox: Outbox, hosted: HostedCall) -> MediaTransport:
        transports.append(MediaTransport(codec, outbox, hosted))
        return transports[0]

    def opening(data: Data, early: Callable[[Data], None]) -> Callable[[], None] | None:
        match codec.decode(data):
            case Opened() as opened:
                return partial(_release, release, redeem(opened), transports[0])
            case Preamble():
                return None
        raise RequestRefusedError("bad_message", "the first message is start")

    return TextSession(connection, hosted, new_transport, opening=opening, speech=speech)


def _release(release: Release, announced: AnnouncedCall, transport: MediaTransport) -> None:
    release(announced, (transport.handoff or {}).get("transfer"))
