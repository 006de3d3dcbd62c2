"""Errors of the route engine.

RouteDefinitionError      a mistake in a chain, raised when the chain is built
RouteError                something went wrong while routes ran
 +-- StageTimeoutError         a stage did not give its next value in time
 +-- PublishLoopError          a route feeds itself
 +-- ScopeLeakError            a generator's cancel scope or nursery affected code outside of it
 +-- NotAnEventError           a value that is not an event was published
 +-- CodeExitError             code raised a BaseException that is not an Exception: SystemExit
Interrupted               raised by InterruptToken.throw_if_requested; no Exception
"""

from __future__ import annotations


class SafeText:
    """Marks an exception whose text is the framework's own, and never quotes what people said."""

    @property
    def safe_text(self) -> str:
        """What may be shown where the texts of exceptions are hidden."""
        return str(self)


class BargeinError(Exception):
    """The root of the errors that bargein raises for its users."""


class RouteDefinitionError(SafeText, BargeinError, TypeError):
    """A chain is declared wrongly; raised where you write the mistake."""


class RouteError(BargeinError):
    """An error that occurred while routes ran."""


class StageTimeoutError(SafeText, RouteError, TimeoutError):
    """The stages before a ``.timeout(s)`` did not give their next value in time."""

    def __init__(self, route: str, limit_s: float) -> None:
        super().__init__(route, limit_s)
        self.route = route
        self.limit_s = limit_s

    def __str__(self) -> str:
        return f"no value within {self.limit_s} s before .timeout() in {self.route}"


class PublishLoopError(SafeText, RouteError):
    """Sync routes triggered one another without end."""

    def __init__(self, event: str, depth: int) -> None:
        super().__init__(event, depth)
        self.event = event
        self.depth = depth

    def __str__(self) -> str:
        return (
            f"{self.event!r} was published {self.depth} levels deep by sync routes that trigger "
            "one another; filter one of them with where= or source="
        )


class ScopeLeakError(SafeText, RouteError):
    """A cancel scope or nursery that a generator held across a ``yield`` affected other code."""

    def __str__(self) -> str:
        return (
            "a generator holds a cancel scope or a nursery across a yield, which cancelled code "
            "outside of that generator, or was never closed; decorate the generator with "
            "@trio.as_safe_channel, and pass it to .stream(), or iterate it with "
            "'async with fn(...) as values: async for value in values: ...'"
        )


class NotAnEventError(SafeText, RouteError, TypeError):
    """A value that is not an event was published."""

    def __init__(self, value: object, fix: str) -> None:
        super().__init__(value, fix)
        self.value = value
        self.fix = fix

    @property
    def safe_text(self) -> str:
        """The text without the value, which may be something that somebody said."""
        kind = "a class" if isinstance(self.value, type) else type(self.value).__name__
        return f"broadcast() publishes events, not {kind}; {self.fix}"

    def __str__(self) -> str:
        return f"{self.safe_text}; it was given {self.value!r:.80}"


class CodeExitError(RouteError):
    """Application code raised a ``BaseException`` that is not an ``Exception``.

    Typically ``SystemExit``, which argparse and click raise for bad arguments, or ``Interrupted``
    out of work that nobody asked to stop.  It ends the work that raised it, and never the server.

    Attributes:
        error: What was raised.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(error)
        self.error = error

    def __str__(self) -> str:
        return f"the code raised {self.error!r}"

    @property
    def safe_text(self) -> str:
        """What may be shown where the texts of exceptions are hidden."""
        kind = type(self.error).__name__
        if isinstance(self.error, Interrupted):
            return f"the code raised {kind}, but its own work was not asked to stop"
        return f"the code raised {kind}, which ended only its own work; raise an Exception instead"


class Interrupted(BaseException):
    """The work that polled this token was asked to stop.

    It is no ``Exception``, so a loop with ``except Exception`` around each step cannot swallow it.
    """
