"""The functions that a router calls when something happens, and the decisions of its chains."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any

from ._events import alias_of
from ._message import Message
from ._run import Run
from ._run_outcome import Decision, Interruption, RouteVerdict
from ._signatures import name_of
from .error_containment import as_error, text_of
from .logs import get_logger

log = get_logger()

DECISIONS_KEPT = 128
"""How many decisions a chain keeps; each further one replaces the oldest."""


class Listeners:
    """The listeners of one router, at most one for each occurrence; ``None`` for no listener.

    ``Router.listen()`` documents their arguments.

    Attributes:
        is_reporting: Whether the listener for failures is being called.
    """

    def __init__(self) -> None:
        self.run_started: Callable[[Run, Any], None] | None = None
        self.run_ended: Callable[[Run], None] | None = None
        self.run_cut: Callable[[Run], None] | None = None
        self.cut_may_wait: Callable[[Message], bool] | None = None
        self.background_requested: Callable[[Run], None] | None = None
        self.describe_interruption: (
            Callable[[Run, Interruption], Awaitable[Interruption]] | None
        ) = None
        self.failed: Callable[[Run | None, Any, str, Exception], None] | None = None
        self.caught: Callable[[Exception], None] | None = None
        self.decided: Callable[[Any, Message, RouteVerdict, str, int], None] | None = None
        self.is_reporting = False

    def set(self, **listeners: Any) -> None:
        """Replace the given listeners; ``None`` leaves one as it is."""
        for name, listener in listeners.items():
            if listener is not None:
                setattr(self, name, listener)

    def explain_to(self, listener: Callable[..., None] | None) -> None:
        """Replace the listener for decisions; ``None`` removes it."""
        self.decided = listener

    def notify(self, listener: Callable[..., Any] | None, *args: Any) -> None:
        """Call a listener, if there is one; its errors are logged and go no further."""
        if listener is None:
            return
        try:
            listener(*args)
        except BaseException as caught:  # noqa: ASYNC103 - see as_error()
            error = as_error(caught)
            if listener is not self.caught:
                self.show(error)
            log.exception("listener_failed", listener=name_of(listener), exc_info=error)

    def log_failure(self, route: Any, stage: str, error: Exception) -> None:
        """Log that a stage, a rule or a handler of a chain failed."""
        log.error(
            "stage_failed",
            route=str(route),
            stage=stage,
            error=type(error).__name__,
            pii_error=text_of(error),
            exc_info=error,
        )

    def report_failure(self, run: Run | None, route: Any, stage: str, error: Exception) -> None:
        """Call the listener for failures."""
        self.is_reporting = True
        try:
            self.notify(self.failed, run, route, stage, error)
        finally:
            self.is_reporting = False

    def show(self, error: Exception) -> None:
        """Call the listener for caught exceptions with one that goes no further."""
        self.notify(self.caught, error)


class DecisionLog:
    """Keeps the last decisions of a chain, and calls the listener for each."""

    __slots__ = ("_lines", "_listeners", "_route")

    def __init__(self, route: Any, listeners: Listeners) -> None:
        self._route = route
        self._listeners = listeners
        self._lines: deque[tuple[float, type, int, RouteVerdict, str, int]] | None = None

    def add(self, message: Message, verdict: RouteVerdict, why: str, run: int = 0) -> None:
        """Record what the chain did with a message.

        Args:
            message: The message it acted on, or ignored.
            verdict: What it did.
            why: The rule that decided, as text for people.
            run: The number of the run concerned; 0 for none.
        """
        if self._lines is None:
            self._lines = deque(maxlen=DECISIONS_KEPT)
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
