"""A caller who is put through by their carrier, and may come back: a cold transfer.

Rules:
1. The socket ends, and the call goes on without it: the agent is held, and memory stays one.
2. The carrier tells by its webhook what became of it.  Somebody who answers ends the call; a number
   that is busy, silent or not to be reached brings the caller back, on another socket.
3. Nothing stops it once the carrier has been told: not an interruption, and not a verb.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

import trio

from ..._line_abilities import CallActionError
from .placed_calls import WORDS

RING_S = 20.0
"""How long the other telephone rings, in seconds: less than a transfer may take."""

DECIDED_S = RING_S + 15.0
"""After how many seconds the carrier has told what became of a caller who was put through."""

BACK_S = 10.0
"""How many seconds a caller who comes back may take to be on the line again; they take one."""


@final
class Departure:
    """A caller who has left for somebody else.

    Attributes:
        fate: What became of it: ``answered``, ``left`` if the caller hung up, or a status of a
            placed call; empty before that is known.
        is_back: Set when the caller is on the line again.
    """

    def __init__(self, on_decided: Callable[[str], None]) -> None:
        """Start without news.

        Args:
            on_decided: Called once, with what became of it.
        """
        self.fate = ""
        self.is_back = trio.Event()
        self._decided = trio.Event()
        self._on_decided = on_decided

    def decide(self, fate: str) -> None:
        """Record what became of it; the first news counts."""
        if not self.fate:
            self.fate = fate
            self._decided.set()
            self._on_decided(fate)

    @property
    def may_come_back(self) -> bool:
        """Whether the caller is brought back, and is not on the line yet."""
        return self.fate in WORDS and not self.is_back.is_set()

    def come_back(self) -> None:
        """Record that the caller is on the line again."""
        self.is_back.set()

    async def outcome(self) -> None:
        """Wait until somebody has answered; cancelling this changes nothing for the caller.

        Raises:
            CallActionError: Nobody has; the caller is back, or gone.
        """
        await self._decided.wait()
        if self.fate == "answered":
            return
        if self.fate in WORDS:
            cause, reason = WORDS[self.fate]
            with trio.move_on_after(BACK_S):
                await self.is_back.wait()
                raise CallActionError(f"{reason}; the caller is with you again", cause=cause)
        raise CallActionError("the caller has hung up", cause="caller_left")
