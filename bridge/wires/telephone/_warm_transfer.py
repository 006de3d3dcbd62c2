"""A transfer whose colleague is asked first, while the caller waits on their own line.

Rules:
1. The caller stays with the agent until the colleague has agreed: a busy number, a colleague who
   declines, a caller who changes their mind and a verb all leave the caller where they were.
2. Whatever ends it, the colleague's call ends: one that rings is hung up, and one who has answered
   is told that nobody waits any more.
3. Joining is one request for each of the two, and cannot be undone; the agent leaves both calls.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, final

import trio

from bargein.routes.logs import get_logger

from ..._line_abilities import CallActionError, Consult
from ...events import EndCall, TransferStep
from ._call_tokens import AnnouncedCall
from .carrier import ROOM
from .carrier_account import CarrierAccount
from .placed_calls import PlacedCall

if TYPE_CHECKING:
    from ...call._call import Call

RING_S = 25.0
"""How long a colleague's telephone rings, in seconds: five times, before an answering machine."""

HANG_UP_S = 5.0
"""How long the carrier may take to end the colleague's call, in seconds."""

GONE = "The caller is not waiting any more. Thank you."
"""What a colleague is told when the caller has left, or does not want to be transferred."""

log = get_logger()


@final
class WarmTransfer:
    """One attempt to pass a caller on to a colleague."""

    __slots__ = ("_asked", "_asking", "_call", "_consult", "_is_taken", "_placed")

    def __init__(self, consult: Consult) -> None:
        """Ask nobody yet.

        Args:
            consult: Talks to the colleague, and returns whether they take the caller.
        """
        self._consult = consult
        self._call: Call | None = None
        self._placed: PlacedCall | None = None
        self._asking = trio.CancelScope()
        self._asked = trio.Event()
        self._is_taken = False

    async def run(
        self,
        account: CarrierAccount,
        caller: AnnouncedCall,
        number: str,
        progressed: Callable[[TransferStep], None],
    ) -> None:
        """Call the colleague, ask them, and connect both.

        Args:
            account: Places and joins calls.
            caller: Whose call it is.
            number: The colleague's number.
            progressed: Called with each step.

        Raises:
            CallActionError: They are not connected.
        """
        try:
            placed = self._placed = await account.dial(
                number, sender=caller.called, base=caller.base, answer=self._answer, ring_s=RING_S
            )
            progressed("dialled")
            await placed.answered()
            progressed("answered")
            await self._verdict(placed)
            if not self._is_taken:
                raise CallActionError("the colleague did not take the call", cause="declined")
            progressed("accepted")
            with trio.CancelScope(shield=True):  # each request of it has its limit
                room_url = f"{caller.after_url}?{ROOM}={secrets.token_hex(16)}"
                await account.carrier.join(caller.call, placed.call, room_url)
        except BaseException:
            with trio.move_on_after(HANG_UP_S, shield=True):
                await self._let_go(account)
            raise
        if self._call is not None:
            self._call.end("transferred")

    async def _answer(self, call: Call) -> None:
        """Answer the colleague's call."""
        self._call = call
        try:
            with self._asking:
                self._is_taken = await self._consult(call) is True
        finally:
            self._asked.set()

    async def _verdict(self, placed: PlacedCall) -> None:
        """Wait until the colleague has been asked, or is gone."""
        async with trio.open_nursery() as nursery:

            async def over() -> None:
                await placed.over()
                nursery.cancel_scope.cancel(reason="the colleague has hung up")

            nursery.start_soon(over)
            await self._asked.wait()
            nursery.cancel_scope.cancel(reason="the colleague was asked")
        if placed.is_over:
            self._is_taken = False

    async def _let_go(self, account: CarrierAccount) -> None:
        """End the colleague's call."""
        placed, call = self._placed, self._call
        self._asking.cancel(reason="the caller is not transferred")
        if placed is None or placed.is_over:
            return
        if call is not None and not call.ended.is_set():
            if not self._asked.is_set():  # they were interrupted in their own answer
                if call.answer is not None:
                    call.answer.interrupt()
                call.say(GONE)
            call.publish(EndCall(reason="not_transferred"), source="call")
            return
        try:
            await account.carrier.hang_up(placed.call)
        except CallActionError as error:
            log.warning("colleague_not_hung_up", cause=error.cause, pii_why=str(error))
