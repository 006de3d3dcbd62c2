"""Reports a failure that persists once, and then counts it.

Rules:
1. A failure is reported if it is new; its stage and the class of its error identify it.
2. The same failure is only counted until that stage works again.
3. Then the count is logged, and the next failure is new.
4. A stage that fails now and then does not work: it must go without failure for ``STEADY_S``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

from .logs import get_logger

log = get_logger()

KINDS_KEPT = 32
"""How many kinds of failure are remembered; a further one forgets the oldest, which would then be
reported again.  A chain has few stages, and few ways to fail."""


STEADY_S = 1.0
"""How many seconds ago the last failure must be for a stage to count as working.  Turns of a caller
come less often than that; frames of audio come fifty times a second."""


class Failures:
    """Remembers the persisting failures of one chain or one transport."""

    __slots__ = ("_last_s", "_of", "_withheld")

    def __init__(self, **of: str) -> None:
        """Start without failures.

        Args:
            **of: Keys for log lines that say whose failures these are, such as ``route=``.
        """
        self._of = of
        self._withheld: dict[tuple[str, type], tuple[int, int]] = {}
        self._last_s = 0.0

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that fail at present, each once."""
        return tuple(dict.fromkeys(stage for stage, _ in self._withheld))

    def is_new(self, stage: str, error: Exception, run: int = 0) -> bool:
        """Return whether to report a failure; a repeated one is only counted.

        Args:
            stage: What failed.
            error: What it raised; its class identifies the failure, its text does not.
            run: The number of the failed run; every error of a run is reported.  0 for none.
        """
        self._last_s = trio.current_time()
        key = (stage, type(error))
        if key in self._withheld:
            reported_run, withheld = self._withheld[key]
            if run and run == reported_run:
                return True
            self._withheld[key] = (reported_run, withheld + 1)
            return False
        if len(self._withheld) >= KINDS_KEPT:
            del self._withheld[next(iter(self._withheld))]
        self._withheld[key] = (run, 0)
        return True

    def works(self, stage: str) -> bool:
        """Record that a stage worked, and return whether its next failure is new.

        Args:
            stage: Which stage worked.
        """
        if trio.current_time() < self._last_s + STEADY_S:
            return False
        self._forget(stage, "works_again")
        return True

    def close(self) -> None:
        """Log how often each stage failed, because none will be tried again."""
        for stage in self.stages:
            self._forget(stage, "never_worked_again")

    def _forget(self, stage: str, event: str) -> None:
        withheld = sum(self._withheld.pop(k)[1] for k in list(self._withheld) if k[0] == stage)
        if withheld:
            log.info(event, **self._of, stage=stage, withheld=withheld)


class ChainFailures:
    """The persisting failures of one chain.

    Attributes:
        known: The failures; ``None`` if there are none, as in most chains.
    """

    __slots__ = ("_route", "known")

    def __init__(self, route: Any) -> None:
        self._route = route
        self.known: Failures | None = None

    def is_new(self, run: Any, stage: str, error: Exception) -> bool:
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
