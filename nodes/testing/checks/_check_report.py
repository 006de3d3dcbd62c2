"""The report of a provider's checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bargein.routes import BargeinError


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    name: str
    outcome: Literal["passed", "failed", "skipped"]
    detail: str = ""
    """What was expected and what happened, or why it was skipped; empty if it passed."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The results of all checks; prints as a table."""

    subject: str
    """What was checked."""
    results: tuple[CheckResult, ...]

    def _names(self, outcome: str) -> tuple[str, ...]:
        return tuple(result.name for result in self.results if result.outcome == outcome)

    @property
    def passed(self) -> tuple[str, ...]:
        """The checks that passed."""
        return self._names("passed")

    @property
    def failed(self) -> tuple[str, ...]:
        """The checks that failed."""
        return self._names("failed")

    @property
    def skipped(self) -> tuple[str, ...]:
        """The checks that could not run, because the fake cannot play their fault."""
        return self._names("skipped")

    def __str__(self) -> str:
        counts = f"{len(self.passed)} passed, {len(self.failed)} failed"
        lines = [f"{self.subject}: {counts}, {len(self.skipped)} skipped"]
        for result in self.results:
            lines.append(f"{result.outcome:8} {result.name}")
            lines += [f"         {line}" for line in result.detail.splitlines()]
        return "\n".join(lines)


class ProviderCheckError(BargeinError, AssertionError):
    """A provider failed checks.

    Attributes:
        report: The results of all checks.
    """

    def __init__(self, report: CheckReport) -> None:
        super().__init__(str(report))
        self.report = report


class BreachError(BargeinError, AssertionError):
    """A promise that the provider broke."""

    def __init__(self, expected: str, came: str) -> None:
        super().__init__(f"expected: {expected}\ncame: {came}")
