"""A caller who is put through by their carrier, and may come back: a cold transfer.

Rules:
1. The socket ends, and the call goes on without it: the agent is held, and memory stays one.
2. The carrier tells by its webhook what became of it.  Somebody who answers ends the call; a number
   that is busy, silent or not to be reached brings the caller back, on another socket.
3. Nothing stops it once the carrier has been told: not an interruption, and not a verb.
4. With a carrier that tells nothing, the call ends as soon as the carrier has the number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, final

import trio

from ..._line_abilities import CallActionError
from ...events import TransferProgressed
from .._wire import HostedCall
from ._call_tokens import AnnouncedCall, Departure
from .placed_calls import WORDS

RING_S = 20.0
"""How long the other telephone rings, in seconds: less than a transfer may take."""

DECIDED_S = RING_S + 15.0
"""After how many seconds the carrier has told what became of a caller who was put through."""

BACK_S = 10.0
"""How many seconds a caller who comes back may take to be on the line again; they take one."""

KNOWN_S = 0.2
"""How many seconds a tool has to return after a transfer, before the call ends."""


class TransferOutcome(NamedTuple):
    """What a carrier's webhook tells of a caller who was put through."""

    fate: str
    """``answered``, ``left`` if the caller hung up, or a status of a placed call; empty for what is
    not known yet."""
    is_asked: bool
    """Whether the carrier asks what the caller gets next."""


@final
class ColdTransfer:
    """The transfers of one call by its carrier's webhook."""

    __slots__ = ("_away", "_has_outcome", "_hosted")

    def __init__(self, hosted: HostedCall, *, has_outcome: bool = True) -> None:
        """Start with a caller who is here.

        Args:
            hosted: The call.
            has_outcome: Whether the carrier tells what becomes of a caller who is put through.
        """
        self._hosted = hosted
        self._has_outcome = has_outcome
        self._away: Departure | None = None

    @property
    def is_away(self) -> bool:
        """Whether the caller has left for somebody else, and the call goes on without a socket."""
        return self._away is not None

    async def transfer(self, announced: AnnouncedCall, leave: Callable[[str], None]) -> None:
        """Let the carrier put the caller through; return once somebody has answered.

        Cancelling this changes nothing for the caller.

        Args:
            announced: Whose call it is.
            leave: Ends the socket; called with the webhook that is told what becomes of it, empty
                for none.

        Raises:
            CallActionError: Nobody has answered; the caller is back, or gone.
        """
        call = self._hosted.call
        if call is None:
            return
        if not self._has_outcome:
            leave("")
            self._hosted.end("transferred")
            return
        away = self._away = Departure(self._decided)
        announced.depart(away, self._hosted.call_id)
        call.publish(TransferProgressed(step="dialled"), source="call")
        call.hold_speech("connection")
        leave(f"{announced.after_url}?transfer={announced.key}")
        at_s = trio.current_time() + DECIDED_S
        call.router.call_at(away, at_s, lambda: away.decide("left"))
        await away.decided.wait()
        if away.fate == "answered":
            return
        if away.fate in WORDS:
            cause, reason = WORDS[away.fate]
            with trio.move_on_after(BACK_S):
                await away.is_back.wait()
                raise CallActionError(f"{reason}; the caller is with you again", cause=cause)
        raise CallActionError("the caller has hung up", cause="caller_left")

    def _decided(self, fate: str) -> None:
        """Follow a caller who was put through."""
        call = self._hosted.call
        if call is None:
            return
        call.router.forget(self._away)
        if fate == "answered":
            self.end_soon()
        elif fate == "left":
            self._hosted.end("hangup")
        else:
            at_s = trio.current_time() + BACK_S
            call.router.call_at(self._away, at_s, lambda: self._hosted.end("disconnected"))

    def end_soon(self) -> None:
        """End the call once what asked for the transfer knows of it."""
        call = self._hosted.call
        if call is not None:
            at_s = trio.current_time() + KNOWN_S
            call.router.call_at(object(), at_s, lambda: self._hosted.end("transferred"))

    def come_back(self) -> None:
        """Let the caller hear the agent again, from the first word that was not heard."""
        call, away, self._away = self._hosted.call, self._away, None
        if call is not None and away is not None:
            call.router.forget(away)
            away.come_back()
            call.publish(TransferProgressed(step="returned"), source="call")
            call.release_speech("connection")
