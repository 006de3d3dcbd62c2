"""Decides which failures of a chain are reported, and which repeat and are only counted."""

from __future__ import annotations

from collections.abc import Callable

from ._repeated_failures import Failures
from ._route import Route
from ._run import Run


class ChainFailures:
    """The persisting failures of one chain.

    Attributes:
        known: The failures; ``None`` if there are none, as in most chains.
    """

    __slots__ = ("_route", "known")

    def __init__(self, route: Route) -> None:
        self._route = route
        self.known: Failures | None = None

    def is_new(self, run: Run | None, stage: str, error: Exception) -> bool:
        """Return whether to report a failure; a repeated one is only counted.

        Every failed answer is reported, because a caller is waiting for it.

        Args:
            run: The run that failed; ``None`` if the failure belongs to none.
            stage: What failed.
            error: What it raised.
        """
        if run is not None and self._route.answers:
            return True
        if self.known is None:
            self.known = Failures(route=str(self._route))
        return self.known.is_new(stage, error, run.id if run is not None else 0)

    def works(self, stage: str) -> bool:
        """Record that a stage worked, and return whether its next failure is new."""
        if self.known is not None:
            if not self.known.works(stage):
                return False
            if not self.known.stages:
                self.known = None
        return True

    def all_work(self, is_watched: Callable[[str], bool]) -> None:
        """Record that a run reached its end, which proves that all its async stages work.

        Args:
            is_watched: Whether a sync stage has failed and not worked since; the end of a run
                proves nothing about such a stage.
        """
        for stage in self.known.stages if self.known is not None else ():
            if not is_watched(stage):
                self.works(stage)

    def close(self) -> None:
        """Log how often each failure repeated, and forget them all."""
        known, self.known = self.known, None
        if known is not None:
            known.close()
