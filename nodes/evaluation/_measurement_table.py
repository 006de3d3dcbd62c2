"""The table of measurements; a row has a bound, or only informs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any


@dataclass(frozen=True)
class MeasurementRow:
    """The result of one measurement."""

    case: str
    """The kind of measurement, such as "barge-in"."""
    what: str
    """What the caller did."""
    happened: str
    """What the agent did."""
    figure: float | None = None
    """The measured number; ``None`` if the case could not be measured, which misses a bound."""
    unit: str = "ms"
    bound: float | None = None
    """The largest figure that passes; ``None`` for a row that only informs."""
    decided: str = ""
    """The decision, its rule and the values it compared."""
    holds: bool = True
    """Whether everything else holds that must; false fails the row."""
    picture: str = ""
    """The file of its picture; empty if there is none."""

    @property
    def judged(self) -> bool:
        """Whether this row can fail."""
        return self.bound is not None or not self.holds

    @property
    def passed(self) -> bool:
        """Whether the figure is within its bound, and everything else holds."""
        if self.bound is None:
            return self.holds
        return self.holds and self.figure is not None and self.figure <= self.bound

    @property
    def verdict(self) -> str:
        """``pass``, ``FAIL``, or empty for a row that only informs."""
        return "" if not self.judged else "pass" if self.passed else "FAIL"


_CASE, _WHAT, _NUMBER = 16, 34, 9
_INDENT = " " * (_CASE + 2)


def table_heading(width: int) -> str:
    """Return the heading of the table.

    Args:
        width: Columns of the terminal; fewer than 100 count as 100.
    """
    room = _room(width)
    names = f"{'case':<{_CASE}}{'the caller':<{_WHAT}}{'what happened':<{room}}"
    return f"{names}{'figure':>{_NUMBER + 3}}{'bound':>{_NUMBER}}"


def row_lines(row: MeasurementRow, width: int) -> list[str]:
    """Return a row as lines of text, with its figures in the first.

    Args:
        row: The row.
        width: Columns of the terminal; fewer than 100 count as 100.
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
    """Return a figure as the table shows it."""
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def row_sentence(row: MeasurementRow) -> str:
    """Return a row as one sentence, for the caption of its picture."""
    figure = "" if row.figure is None else f", {number(row.figure)} {row.unit}".rstrip()
    if row.bound is not None:
        figure += f" (at most {number(row.bound)}: {row.verdict})"
    return f"{row.what}: {row.happened}{figure}"


def as_json(rows: Sequence[MeasurementRow]) -> list[dict[str, Any]]:
    """Return the rows as plain data: their fields, and the verdict."""
    return [{**asdict(row), "verdict": row.verdict} for row in rows]
