"""Keeps the reasons for which the agent's voice is held; it continues when none is left.

Rules:
1. A hold stops only the voice; generation continues, and its text waits.
2. Several reasons may hold at once; the voice continues when the last one is released.
3. A hold ends with the speech it holds.  When that was cut, and nothing is said or generated any
   more, the next answer is audible.  Only a reason in ``LASTING`` holds the next one too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from bargein.routes.logs import get_logger

from ..events import AgentSpeechHeld, AgentSpeechReleased
from ._playout import Playout
from ._text_playout import TextPlayout

if TYPE_CHECKING:
    from bargein.routes import Router

log = get_logger()

LASTING = frozenset({"pause", "connection", "sound"})
"""The reasons that hold until they are released, whatever is cut meanwhile: the verb pause holds
the whole call, and without a connection, or while the caller's loudspeaker stands still, nothing
can be heard."""


class Holding:
    """Holds the voice of one call's agents."""

    __slots__ = ("_has_something", "_playout", "_router", "_since_s")

    def __init__(
        self, router: Router, playout: Playout | TextPlayout, has_something: Callable[[], bool]
    ) -> None:
        self._router = router
        self._playout = playout
        self._has_something = has_something
        self._since_s: dict[str, float] = {}

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the voice is held, in order; empty if it is not."""
        return tuple(self._since_s)

    @property
    def lasts(self) -> bool:
        """Whether the voice is held for a reason in ``LASTING``."""
        return not LASTING.isdisjoint(self._since_s)

    def hold(self, reason: str) -> None:
        if reason in self._since_s:
            return
        now_s = trio.current_time()
        # First what was heard until now: nothing may be left to hold.
        self._playout.advance(now_s)
        if reason not in LASTING and not self._has_something():
            return
        # Before the event: whoever hears of the hold may ask for its reasons.
        self._since_s[reason] = now_s
        self._playout.hold()
        log.debug("speech_held", reason=reason)
        self._router.publish_detached(AgentSpeechHeld(reason=reason), "call")

    def release(self, reason: str) -> None:
        """Remove one reason; the voice continues if it was the last."""
        since_s = self._since_s.pop(reason, None)
        if since_s is None:
            return
        respoken = not self._since_s and self._playout.release()
        held_s = trio.current_time() - since_s
        log.debug("speech_released", reason=reason, held_s=held_s, respoken=respoken)
        released = AgentSpeechReleased(reason=reason, held_s=held_s, respoken=respoken)
        self._router.publish_detached(released, "call")

    def release_empty(self) -> None:
        """Remove the reasons that hold nothing any more."""
        if self._since_s and not self._has_something():
            # The difference is a copy: a release takes its reason out.
            for reason in self._since_s.keys() - LASTING:
                self.release(reason)

    def close(self) -> None:
        """Remove all reasons, because the call is over."""
        for reason in self.reasons:
            self.release(reason)
