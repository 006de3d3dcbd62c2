"""The triggers of one chain that wait for a place among its runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import structlog

from ._decision_log import DecisionLog
from ._message import Message
from ._outcome import RouteStatistics
from ._pipeline import Pending

log = structlog.get_logger()

WaitingTrigger = tuple[Message, Any, "Pending | None"]
"""The trigger, what the sync stages made of it, and what one of them gave to be awaited."""


class TriggerQueue:
    """Triggers in the order in which they came; each that is dropped is counted and explained.

    Attributes:
        waiting: They, oldest first.
    """

    __slots__ = ("_decisions", "_limit", "_statistics", "waiting")

    def __init__(self, limit: float, statistics: RouteStatistics, decisions: DecisionLog) -> None:
        """Begin without any.

        Args:
            limit: How many may wait; infinity means that there is no limit.
            statistics: Counts those that are dropped.
            decisions: Records why each one is.
        """
        self._limit = limit
        self._statistics = statistics
        self._decisions = decisions
        self.waiting: list[WaitingTrigger] = []

    def has_room(self, message: Message, route: str) -> bool:
        """Return whether one more may wait; if not, it is dropped with a warning in the log."""
        if len(self.waiting) < self._limit:
            return True
        self.drop(message, None, f"{len(self.waiting)} triggers wait already")
        log.warning("trigger_dropped", route=route, waiting=len(self.waiting))
        return False

    def add(self, message: Message, value: Any, pending: Pending | None) -> None:
        """Let a trigger wait behind the others."""
        self.waiting.append((message, value, pending))

    def next(self) -> WaitingTrigger:
        """Remove the oldest, and return it.

        Raises:
            IndexError: None waits.
        """
        return self.waiting.pop(0)

    def drop(self, message: Message, pending: Pending | None, why: str) -> None:
        """Count a trigger that begins no run, and record why."""
        self._statistics.dropped += 1
        self._decisions.add(message, "dropped", why)
        if pending is not None:
            pending.discard()

    def drop_all(self, why: str) -> None:
        """Drop every trigger that waits."""
        while self.waiting:
            message, _, pending = self.waiting.pop(0)
            self.drop(message, pending, why)

    def drop_where(self, meant: Callable[[Message], bool], why: str) -> list[Message]:
        """Drop some of the triggers that wait, and return them in their order.

        Args:
            meant: Which.
            why: The reason, for people.
        """
        waiting, self.waiting = self.waiting, []
        dropped: list[Message] = []
        for message, value, pending in waiting:
            if meant(message):
                self.drop(message, pending, why)
                dropped.append(message)
            else:
                self.waiting.append((message, value, pending))
        return dropped

    def has(self, message: Message) -> bool:
        """Return whether a message waits here."""
        return any(message is waiting for waiting, _, _ in self.waiting)
