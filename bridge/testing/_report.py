"""The results of interrupting a scenario, or letting it fail, everywhere."""

from __future__ import annotations

from dataclasses import dataclass

from ._interruption_points import InterruptionPoint

SHOWN = 10
"""How many of the points at which something broke are listed; the rest is counted."""


@dataclass(frozen=True, slots=True)
class InterruptedRun:
    """One run of the scenario, with an interrupt at one point."""

    point: InterruptionPoint
    answers_cut: int
    """How many answers the interrupt cut, in its own step."""
    drifted: bool
    """Whether the run differed from the first one before its point."""
    breaches: tuple[str, ...] = ()
    """What was wrong, a sentence each."""


@dataclass(frozen=True, slots=True)
class Report:
    """The results of ``interrupt_everywhere()`` or ``fail_everywhere()``; prints as a table."""

    points: int
    """How many points the scenario has."""
    tried: tuple[InterruptedRun, ...]
    """A run for each point that was tried, in order."""
    what: str = "interrupts"
    """What was tried at the points."""

    @property
    def cut(self) -> int:
        """In how many runs the interrupt cut an answer; in the others there was nothing to cut."""
        return sum(bool(run.answers_cut) for run in self.tried)

    @property
    def drifted(self) -> int:
        """In how many runs the point was not where the first run found it.

        The laws are checked in these runs as well, but only 0 means that every point was tried.
        Runs drift by whatever differs between them: threads, processes, the real clock, or state
        that outlives a call.
        """
        return sum(run.drifted for run in self.tried)

    @property
    def where(self) -> tuple[str, ...]:
        """Task and line of each distinct place where the scenario was interrupted."""
        return tuple(dict.fromkeys(_place(run.point) for run in self.tried))

    @property
    def broken(self) -> tuple[InterruptedRun, ...]:
        """The runs in which a law was broken."""
        return tuple(run for run in self.tried if run.breaches)

    def __str__(self) -> str:
        lines = [
            f"{self.points} points, {len(self.tried)} tried, {self.cut} cut an answer, "
            f"{len(self.broken)} broke, {self.drifted} drifted",
            "tried  cut  where",
        ]
        for place in self.where:
            runs = [run for run in self.tried if _place(run.point) == place]
            lines.append(f"{len(runs):5}{sum(bool(r.answers_cut) for r in runs):5}  {place}")
        return "\n".join(lines)

    def failure(self) -> str:
        """Return the message of a failed test: the points at which something broke, and how."""
        broken = self.broken
        lines = [f"{len(broken)} of {len(self.tried)} {self.what} broke the scenario"]
        for run in broken[:SHOWN]:
            lines.append(run.point.done)
            lines += [f"    {breach}" for breach in run.breaches]
        if len(broken) > SHOWN:
            lines.append(f"and {len(broken) - SHOWN} more")
        return "\n".join(lines)


def _place(point: InterruptionPoint) -> str:
    return f"{point.task}: {point.where}"
