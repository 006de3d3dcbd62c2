"""Brings the results of background jobs into the conversation, each exactly once.

A result waits for the next boundary: no agent works or speaks, and the user does not speak either.
If the answer that tells it is cut before any word of it was heard, it is brought once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..events import JobFinished

if TYPE_CHECKING:
    from .._call import Call
    from .._turns import Turn


class Delivery:
    """The results that wait for their moment in one call."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._waiting: list[tuple[JobFinished, str]] = []
        self._telling: dict[int, tuple[JobFinished, str]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, event: JobFinished, source: str) -> None:
        """Bring a result at the next boundary.

        Args:
            event: The result.
            source: The agent whose job it was; its own routes tell it.
        """
        self._waiting.append((event, source))
        self._call.touch_state()

    def look(self) -> None:
        """Bring the next result if this is a boundary; called when the state was worked out."""
        if self._waiting and self._call.state == "idle" and not self._telling:
            event, source = self._waiting.pop(0)
            self._call.router.publish_detached(event, source)

    def began(self, turn: Turn, event: JobFinished) -> None:
        """Take note that a turn tells a result."""
        self._telling[turn.number] = (event, turn.agent)

    def ended(self, turn: Turn) -> None:
        """Take note that a turn is over: what nobody heard is brought again."""
        told = self._telling.pop(turn.number, None)
        if told is None:
            return
        if turn.interruption is not None and not turn.heard.strip():
            self._waiting.insert(0, told)
        self._call.touch_state()
