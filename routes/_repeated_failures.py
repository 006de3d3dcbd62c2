"""Which failures were told, so that one that goes on is told once and then counted.

Rules:
1. A failure is told when it is new: by its stage and the class of its error.
2. The same failure is withheld and counted until that stage works again.
3. Then the count is logged, and the next failure is new.
4. A stage that fails now and then does not work: it must not have failed for ``STEADY_S``.
"""

from __future__ import annotations

import structlog
import trio

log = structlog.get_logger()

KINDS_KEPT = 32
"""How many kinds of failure are told apart at most.  One more forgets the oldest, which would be
told anew: a chain has few stages, and few ways to fail."""


STEADY_S = 1.0
"""How long ago the last failure must be for a stage to count as working.  People fail each other
less often than that; stages that get frames of audio do so fifty times a second."""


class Failures:
    """Remembers the failures that go on: of one chain, of one transport."""

    __slots__ = ("_last_s", "_of", "_withheld")

    def __init__(self, **of: str) -> None:
        """Begin with none.

        Args:
            **of: Keys that tell in a log line whose failures these are, such as ``route=``.
        """
        self._of = of
        self._withheld: dict[tuple[str, type], tuple[int, int]] = {}
        self._last_s = 0.0

    @property
    def stages(self) -> tuple[str, ...]:
        """What fails at present, each once."""
        return tuple(dict.fromkeys(stage for stage, _ in self._withheld))

    def is_news(self, stage: str, error: Exception, run: int = 0) -> bool:
        """Return whether a failure should be told; one that should not is counted.

        Args:
            stage: What failed.
            error: How; its class counts, its text does not.
            run: The number of the run that failed, of which every error is told; 0 for none.
        """
        self._last_s = trio.current_time()
        key = (stage, type(error))
        if key in self._withheld:
            told_run, withheld = self._withheld[key]
            if run and run == told_run:
                return True
            self._withheld[key] = (told_run, withheld + 1)
            return False
        if len(self._withheld) >= KINDS_KEPT:
            del self._withheld[next(iter(self._withheld))]
        self._withheld[key] = (run, 0)
        return True

    def works(self, stage: str) -> bool:
        """Record that a stage has worked, and return whether its next failure is news.

        Args:
            stage: What worked.
        """
        if trio.current_time() < self._last_s + STEADY_S:
            return False
        self._forget(stage, "works_again")
        return True

    def close(self) -> None:
        """Tell how often something failed that will not be tried any more."""
        for stage in self.stages:
            self._forget(stage, "never_worked_again")

    def _forget(self, stage: str, event: str) -> None:
        withheld = sum(self._withheld.pop(k)[1] for k in list(self._withheld) if k[0] == stage)
        if withheld:
            log.info(event, **self._of, stage=stage, withheld=withheld)
