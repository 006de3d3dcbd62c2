"""The triggers of one chain that wait until a run may start."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from ._listeners import DecisionLog
from ._message import Message
from ._run_outcome import RouteStatistics
from .logs import get_logger

log = get_logger()


class Unused(Protocol):
    """What can be closed because nobody will use it."""

    def discard(self) -> None:
        """Close it."""
        ...


WaitingTrigger = tuple[Message, Any, Any]
"""The trigger, what the sync stages made of it, and a result of theirs still to be awaited."""


class TriggerQueue:
    """Triggers in order of arrival; each one dropped is counted and explained.

    Attributes:
        waiting: The triggers, oldest first.
    """

    __slots__ = ("_decisions", "_limit", "_statistics", "waiting")

    def __init__(self, limit: float, statistics: RouteStatistics, decisions: DecisionLog) -> None:
        """Start empty.

        Args:
            limit: How many may wait; infinity means no limit.
            statistics: Counts dropped triggers.
            decisions: Records why each was dropped.
        """
        self._limit = limit
        self._statistics = statistics
        self._decisions = decisions
        self.waiting: deque[WaitingTrigger] = deque()

    def has_room(self, message: Message, route: object) -> bool:
        """Return whether a trigger may wait; if not, drop it and log a warning."""
        if len(self.waiting) < self._limit:
            return True
        self.drop(message, None, f"{len(self.waiting)} triggers wait already")
        log.warning("trigger_dropped", route=str(route), waiting=len(self.waiting))
        return False

    def add(self, message: Message, value: Any, pending: Unused | None) -> None:
        """Queue a trigger behind the others."""
        self.waiting.append((message, value, pending))

    def next(self) -> WaitingTrigger:
        """Remove the oldest trigger, and return it.

        Raises:
            IndexError: The queue is empty.
        """
        return self.waiting.popleft()

    def drop(self, message: Message, pending: Unused | None, why: str) -> None:
        """Count a trigger that starts no run, and record why."""
        self._statistics.dropped += 1
        self._decisions.add(message, "dropped", why)
        if pending is not None:
            pending.discard()

    def drop_all(self, why: str) -> None:
        """Drop every queued trigger."""
        while self.waiting:
            message, _, pending = self.waiting.popleft()
            self.drop(message, pending, why)

    def drop_where(self, meant: Callable[[Message], bool], why: str) -> list[Message]:
        """Drop some of the queued triggers, and return them in order."""
        waiting, self.waiting = self.waiting, deque()
        dropped: list[Message] = []
        for message, value, pending in waiting:
            if meant(message):
                self.drop(message, pending, why)
                dropped.append(message)
            else:
                self.waiting.append((message, value, pending))
        return dropped

    def has(self, message: Message) -> bool:
        """Return whether a message is queued."""
        return any(message is waiting for waiting, _, _ in self.waiting)
