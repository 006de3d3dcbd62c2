"""The last decisions of a chain: why it did or did not act."""

from __future__ import annotations

from ._events import alias_of
from ._listeners import Listeners
from ._message import Message
from ._route import Route
from ._run_outcome import Decision, RouteVerdict

DECISIONS_KEPT = 128
"""How many decisions a chain keeps; each further one replaces the oldest."""

LogLine = tuple[float, type, int, RouteVerdict, str, int]


class DecisionLog:
    """Keeps the last decisions of a chain, and calls the listener for each."""

    __slots__ = ("_lines", "_listeners", "_route")

    def __init__(self, route: Route, listeners: Listeners) -> None:
        self._route = route
        self._listeners = listeners
        self._lines: list[LogLine] | None = None  # most chains of an idle call have none

    def add(self, message: Message, verdict: RouteVerdict, why: str, run: int = 0) -> None:
        """Record what the chain did with a message.

        Args:
            message: The message it acted on, or ignored.
            verdict: What it did.
            why: The rule that decided, as text for people.
            run: The number of the run concerned; 0 for none.
        """
        if self._lines is None:
            self._lines = []
        elif len(self._lines) == DECISIONS_KEPT:
            del self._lines[0]
        self._lines.append((message.at_s, type(message.event), message.id, verdict, why, run))
        listeners = self._listeners
        if listeners.decided is not None:
            listeners.notify(listeners.decided, self._route, message, verdict, why, run)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The last decisions, oldest first."""
        return tuple(
            Decision(at_s, alias_of(cls), message, verdict, f"{why}: run {run}" if run else why)
            for at_s, cls, message, verdict, why, run in self._lines or ()
        )
