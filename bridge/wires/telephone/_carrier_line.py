"""What a call's carrier does for it besides carrying sound: by its webhooks, and by REST."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, final

from ..._line_abilities import CallActionError
from ...events import Button
from ..text._text_transport import checked_number
from ._cold_transfer import ColdTransfer
from .carrier import PressesKeys

if TYPE_CHECKING:
    from .._wire import HostedCall
    from ._call_tokens import AnnouncedCall
    from .carrier_account import CarrierAccount

HandOn = Callable[["AnnouncedCall", str, str], None]
"""Is called with a call whose stream ends, the number that its caller is put through to, and the
webhook that is told what becomes of it; empty for none."""


@final
class CarrierLine:
    """One call, as its carrier knows it."""

    __slots__ = ("_account", "_announced", "_hand_on", "_transfer")

    def __init__(
        self,
        hosted: HostedCall,
        hand_on: HandOn,
        account: CarrierAccount | None = None,
        *,
        tells_outcome: bool,
    ) -> None:
        """Ask nothing yet.

        Args:
            hosted: The call.
            hand_on: Called with the number that the caller is put through to.
            account: What the account does with calls by REST; ``None`` for nothing.
            tells_outcome: Whether the carrier tells what becomes of a caller who is put through.
        """
        self._account = account
        self._hand_on = hand_on
        self._announced: AnnouncedCall | None = None
        self._transfer = ColdTransfer(hosted, has_outcome=tells_outcome)

    def is_of(self, announced: AnnouncedCall) -> None:
        """Record whose call it is."""
        self._announced = announced

    # --- transfers ------------------------------------------------------------------------------

    @property
    def is_away(self) -> bool:
        """Whether the caller has left for somebody else, and the call goes on without a stream."""
        return self._transfer.is_away

    def come_back(self) -> None:
        """Let the caller hear the agent again, on another stream."""
        self._transfer.come_back()

    async def transfer(
        self,
        target_phone_number: str,
        quiet: Callable[[], Awaitable[None]],
        end_stream: Callable[[], None],
    ) -> None:
        """Let the carrier dial a number for the caller.

        Its webhook, which the carrier asks when the stream ends, answers with the number.  Where it
        tells what becomes of it, the call goes on without its caller until then; see
        ``ColdTransfer``.

        Args:
            target_phone_number: The number, or a SIP address.
            quiet: Waits until what was said before was heard.
            end_stream: Ends the stream, and not the call.

        Raises:
            CallActionError: It is neither, or nobody has answered: the caller is back.
        """
        target = checked_number(target_phone_number)
        await quiet()
        announced = self._announced
        if announced is None:
            return

        def leave(then: str) -> None:
            self._hand_on(announced, target, then)
            if then:
                end_stream()

        await self._transfer.transfer(announced, leave)

    # --- by REST --------------------------------------------------------------------------------

    async def press(self, button: Button) -> None:
        """Press a key.

        Raises:
            CallActionError: The carrier presses none, refuses, or cannot be reached.
        """
        carrier = None if self._account is None else self._account.carrier
        if self._announced is None or not isinstance(carrier, PressesKeys):
            raise CallActionError("this telephone line cannot press keys")
        await carrier.press(self._announced.call, button)
