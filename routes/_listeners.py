"""The functions that a router calls when something happens; their errors are logged."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from ._message import Message
from ._route import Route
from ._run import Run
from ._run_outcome import Interruption, RouteVerdict
from ._signatures import name_of
from ._user_errors import as_error, text_of
from .logs import get_logger

log = get_logger()

RunListener = Callable[[Run], None]
RunAndRouteListener = Callable[[Run, Route], None]
FailureListener = Callable[[Run | None, Route, str, Exception], None]
ErrorListener = Callable[[Exception], None]
DecisionListener = Callable[[Route, Message, RouteVerdict, str, int], None]
InterruptionSource = Callable[[Run, Interruption], Awaitable[Interruption]]


class Listeners:
    """The listeners of one router, at most one for each occurrence; ``None`` for no listener.

    ``Router.listen()`` documents their arguments.

    Attributes:
        is_reporting: Whether the listener for failures is being called.
    """

    __slots__ = (
        "background_requested", "caught", "decided", "describe_interruption", "failed",
        "is_reporting", "run_cut", "run_ended", "run_started",
    )  # fmt: skip

    def __init__(self) -> None:
        self.run_started: RunAndRouteListener | None = None
        self.run_ended: RunListener | None = None
        self.run_cut: RunListener | None = None
        self.background_requested: RunListener | None = None
        self.describe_interruption: InterruptionSource | None = None
        self.failed: FailureListener | None = None
        self.caught: ErrorListener | None = None
        self.decided: DecisionListener | None = None
        self.is_reporting = False

    def set(self, **listeners: Any) -> None:
        """Replace the given listeners; ``None`` leaves one as it is."""
        for name, listener in listeners.items():
            if listener is not None:
                setattr(self, name, listener)

    def explain_to(self, listener: DecisionListener | None) -> None:
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

    def log_failure(self, route: Route, stage: str, error: Exception) -> None:
        """Log that a stage, a rule or a handler of a chain failed."""
        log.error(
            "stage_failed",
            route=str(route),
            stage=stage,
            error=type(error).__name__,
            pii_error=text_of(error),
            exc_info=error,
        )

    def report_failure(self, run: Run | None, route: Route, stage: str, error: Exception) -> None:
        """Call the listener for failures."""
        self.is_reporting = True
        try:
            self.notify(self.failed, run, route, stage, error)
        finally:
            self.is_reporting = False

    def show(self, error: Exception) -> None:
        """Call the listener for caught exceptions with one that goes no further."""
        self.notify(self.caught, error)
