"""The table: one row for each thing that is judged, or only told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any


@dataclass(frozen=True)
class Row:
    """What was found of a case."""

    case: str
    what: str
    """What the caller did."""
    happened: str
    """What the agent made of it."""
    figure: float | None = None
    """None where the case could not be measured: that breaks a bound."""
    unit: str = "ms"
    bound: float | None = None
    """The most that the figure may be; None for one that is only told."""
    decided: str = ""
    """The decision, its rule and what it compared."""
    holds: bool = True
    """Whether all else holds that has to."""
    picture: str = ""

    @property
    def judged(self) -> bool:
        """Whether this row can fail."""
        return self.bound is not None or not self.holds

    @property
    def passed(self) -> bool:
        """Whether the figure is within its bound, and all else holds."""
        if self.bound is None:
            return self.holds
        return self.holds and self.figure is not None and self.figure <= self.bound

    @property
    def verdict(self) -> str:
        """``pass``, ``FAIL``, or nothing for a row that is only told."""
        return "" if not self.judged else "pass" if self.passed else "FAIL"


_CASE, _WHAT, _NUMBER = 16, 34, 9
_INDENT = " " * (_CASE + 2)


def head(width: int) -> str:
    """Return the heading of the table."""
    room = _room(width)
    names = f"{'case':<{_CASE}}{'the caller':<{_WHAT}}{'what happened':<{room}}"
    return f"{names}{'figure':>{_NUMBER + 3}}{'bound':>{_NUMBER}}"


def lines(row: Row, width: int) -> list[str]:
    """Return a row as lines of text, the first with its figures.

    Args:
        row: What was found.
        width: Columns of the terminal, 100 at least.
    """
    room = _room(width)
    figure = "" if row.figure is None else number(row.figure)
    bound = "" if row.bound is None else f"<= {number(row.bound)}"
    what, *more = wrap(row.what, _WHAT - 2) or [""]
    happened, *rest = wrap(row.happened, room - 2) or [""]
    found = [
        f"{row.case:<{_CASE}}{what:<{_WHAT}}{happened:<{room}}{figure:>{_NUMBER}}"
        f"{row.unit if figure else '':>3}{bound:>{_NUMBER}} {row.verdict:>5}".rstrip()
    ]
    more += [""] * (len(rest) - len(more))
    rest += [""] * (len(more) - len(rest))
    for one, other in zip(more, rest, strict=True):
        found.append(f"{'':<{_CASE}}{one:<{_WHAT}}{other}".rstrip())
    if row.decided:
        found += [f"{_INDENT}{line}" for line in wrap(f"-> {row.decided}", width - len(_INDENT))]
    return found


def _room(width: int) -> int:
    return max(100, width) - _CASE - _WHAT - 2 * _NUMBER - 10


def number(value: float) -> str:
    """Return a figure as it is shown."""
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def told(row: Row) -> str:
    """Return a row in one sentence, for its picture."""
    figure = "" if row.figure is None else f", {number(row.figure)} {row.unit}".rstrip()
    if row.bound is not None:
        figure += f" (at most {number(row.bound)}: {row.verdict})"
    return f"{row.what}: {row.happened}{figure}"


def as_json(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows as plain data."""
    return [{**asdict(row), "verdict": row.verdict} for row in rows]
