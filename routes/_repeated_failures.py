"""Reports a failure that persists once, and then counts it.

Rules:
1. A failure is reported if it is new; its stage and the class of its error identify it.
2. The same failure is only counted until that stage works again.
3. Then the count is logged, and the next failure is new.
4. A stage that fails now and then does not work: it must go without failure for ``STEADY_S``.
"""

from __future__ import annotations

import math

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
    """Remembers the persisting failures of one chain, sink or transport.

    Attributes:
        withheld: For each failure the run that it was reported of, and how often it was not.
    """

    def __init__(self, **of: object) -> None:
        """Start without failures.

        Args:
            **of: Keys for log lines that say whose failures these are, such as ``route=``; their
                values become texts when something is logged.
        """
        self._of = of
        self.withheld: dict[tuple[str, type], tuple[int, int]] = {}
        self._last_s = -math.inf

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages that fail at present, each once."""
        return tuple(dict.fromkeys(stage for stage, _ in self.withheld))

    def is_new(self, stage: str, error: Exception, run: int = 0) -> bool:
        """Return whether to report a failure; a repeated one is only counted.

        Args:
            error: What it raised; its class identifies the failure, its text does not.
            run: The number of the failed run; every error of a run is reported.  0 for none.
        """
        self._last_s = trio.current_time()
        key = (stage, type(error))
        if key in self.withheld:
            reported_run, withheld = self.withheld[key]
            if run and run == reported_run:
                return True
            self.withheld[key] = (reported_run, withheld + 1)
            return False
        if len(self.withheld) >= KINDS_KEPT:
            del self.withheld[next(iter(self.withheld))]
        self.withheld[key] = (run, 0)
        return True

    def works(self, stage: str) -> bool:
        """Record that a stage worked, and return whether its next failure is new."""
        if trio.current_time() < self._last_s + STEADY_S:
            return False
        self._forget(stage, "works_again")
        return True

    def close(self) -> None:
        """Log how often each stage failed, because none will be tried again."""
        for stage in self.stages:
            self._forget(stage, "never_worked_again")

    def _forget(self, stage: str, event: str) -> None:
        withheld = sum(self.withheld.pop(k)[1] for k in list(self.withheld) if k[0] == stage)
        if withheld:
            of = {key: str(whose) for key, whose in self._of.items()}
            log.info(event, **of, stage=stage, withheld=withheld)
