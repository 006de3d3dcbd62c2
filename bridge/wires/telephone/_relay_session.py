"""One call over ConversationRelay, from the carrier's first message to the relay's end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import final

from ...protocol._outbox import Outbox
from ...websocket import Data
from .._wire import HostedCall, RequestRefusedError, WireConnection
from ..text._text_session import TextSession
from ._call_tokens import AnnouncedCall
from ._relay_codec import Opened, RelayCodec
from ._relay_transport import RelayTransport
from .carrier_account import CarrierAccount

Redeem = Callable[[Opened], AnnouncedCall]
"""Returns the call whose first message has come; raises ``RequestRefusedError``."""


@final
class RelaySession(TextSession):
    """A call over one socket of a carrier; a carrier that comes back does so by its webhook."""

    __slots__ = ()

    def __init__(
        self,
        connection: WireConnection,
        hosted: HostedCall,
        codec: RelayCodec,
        redeem: Redeem,
        release: Callable[[AnnouncedCall], None],
        account: CarrierAccount | None = None,
        *,
        can_leave: bool = False,
    ) -> None:
        """Keep what the call needs; nothing happens before ``run()``.

        Args:
            connection: The socket.
            hosted: The call, as the port gives it.
            codec: Reads and writes the messages.
            redeem: Returns the announced call that the first message is of.
            release: Called with it when it is over.
            account: What the account does with calls by REST; ``None`` for nothing.
            can_leave: Whether the carrier asks what comes next when its relay was closed.
        """
        transports: list[RelayTransport] = []

        def opening(data: Data, early: Callable[[Data], None]) -> Callable[[], None]:
            opened = codec.decode(data)
            if not isinstance(opened, Opened):
                raise RequestRefusedError("bad_message", "the first message is setup")
            announced = redeem(opened)
            transports[0].is_of(announced)
            return partial(release, announced)

        def new_transport(outbox: Outbox, hosted: HostedCall) -> RelayTransport:
            transports.append(RelayTransport(codec, outbox, hosted, account))
            return transports[0]

        super().__init__(connection, hosted, new_transport, opening=opening, can_leave=can_leave)


REFUSED = HTTPStatus.FORBIDDEN
"""The status for what a carrier did not sign, or announce."""
