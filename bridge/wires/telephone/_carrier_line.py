"""What a call's carrier does for it by REST; what its own messages cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from ..._line_abilities import CallActionError
from ...events import Button
from .carrier import PressesKeys

if TYPE_CHECKING:
    from ._call_tokens import AnnouncedCall
    from .carrier_account import CarrierAccount


@final
class CarrierLine:
    """One call, as its carrier's REST knows it.

    Attributes:
        announced: The call; ``None`` before its first message.
    """

    __slots__ = ("_account", "announced")

    def __init__(self, account: CarrierAccount | None) -> None:
        """Ask nothing yet.

        Args:
            account: What the account does with calls by REST; ``None`` for nothing.
        """
        self._account = account
        self.announced: AnnouncedCall | None = None

    def is_of(self, announced: AnnouncedCall) -> None:
        """Record whose call it is."""
        self.announced = announced

    async def press(self, button: Button) -> None:
        """Press a key.

        Raises:
            CallActionError: The carrier presses none, refuses, or cannot be reached.
        """
        carrier = None if self._account is None else self._account.carrier
        if self.announced is None or not isinstance(carrier, PressesKeys):
            raise CallActionError("this telephone line cannot press keys", cause="unable")
        await carrier.press(self.announced.call, button)
