"""Places the labels of moments on one axis so that none covers another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

GAP = 6.0
"""Logical pixels between two labels, and between a label and another label's line."""

LEAST = 80.0
"""The minimum width of a label, in logical pixels; a shorter one says nothing."""


class UnplacedLabel(NamedTuple):
    """A moment with a label, in logical pixels."""

    x: float
    width: float
    """The width of the label, which starts at ``x``."""


class PlacedLabel(NamedTuple):
    """The place of a label."""

    row: int
    """0 is the uppermost."""
    width: float
    """The width available for the label."""


def rows_below(marks: Sequence[UnplacedLabel], rows: int) -> list[PlacedLabel | None]:
    """Return the place of each label below an axis, which a line connects to its moment.

    The line of a mark crosses all rows above its own, so the later of two neighbours goes above:
    its label starts after the line of the earlier one.

    Args:
        marks: The marks, most important first: they get the available room first.
        rows: The number of rows.

    Returns:
        The place of each mark; ``None`` if there is less room than ``LEAST``.
    """
    placed: list[tuple[UnplacedLabel, int]] = []
    found: list[PlacedLabel | None] = []
    for mark in marks:
        place = _place(mark, rows, placed)
        found.append(place)
        if place is not None:
            placed.append((UnplacedLabel(mark.x, place.width), place.row))
    return found


def _place(
    mark: UnplacedLabel, rows: int, placed: Sequence[tuple[UnplacedLabel, int]]
) -> PlacedLabel | None:
    rooms = [min(mark.width, _room(mark, row, placed)) for row in range(rows)]
    widest = max(rooms)
    return None if widest < min(LEAST, mark.width) else PlacedLabel(rooms.index(widest), widest)


def _room(mark: UnplacedLabel, row: int, placed: Sequence[tuple[UnplacedLabel, int]]) -> float:
    """Return how wide a label can be in a row; 0 if its line would cross another label."""
    room = mark.width
    for other, at in placed:
        if at <= row and _covers(other, mark.x):
            return 0.0
        if at >= row and other.x >= mark.x:
            room = min(room, other.x - GAP - mark.x)  # its label, or its line on the way there
    return room


def sides(marks: Sequence[UnplacedLabel], left: float, right: float) -> list[float | None]:
    """Return where each label of one row starts: right of its line, or else left of it.

    Args:
        marks: The marks, in order of time.
        left: The left end of the row.
        right: The right end of the row.

    Returns:
        The left edge of each label; ``None`` if it would cover a neighbour's label or line.
    """
    found: list[float | None] = []
    free_from = left
    for number, mark in enumerate(marks):
        end = marks[number + 1].x - GAP if number + 1 < len(marks) else right
        at: float | None = None
        if mark.x + mark.width <= end and mark.x >= free_from:
            at = mark.x
        elif mark.x - mark.width >= free_from:
            at = mark.x - mark.width
        found.append(at)
        free_from = GAP + max(mark.x, mark.x if at is None else at + mark.width)
    return found


def _covers(mark: UnplacedLabel, x: float) -> bool:
    return mark.x - GAP < x < mark.x + mark.width + GAP
