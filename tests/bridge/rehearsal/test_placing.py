"""Labels of neighbours cover neither each other nor each other's lines."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest

from bargein.bridge.rehearsal._placing import Mark, Place, rows_below, sides


def check_rows(marks: list[Mark], places: list[Place | None]) -> None:
    """No label meets another, and no line runs through one."""
    placed = [
        (Mark(mark.x, place.width), place.row)
        for mark, place in zip(marks, places, strict=True)
        if place is not None
    ]
    for (one, above), (other, below) in combinations(placed, 2):
        if above == below:
            assert one.x + one.width <= other.x or other.x + other.width <= one.x
        upper, lower = (one, other) if above < below else (other, one)
        if above != below:
            assert not upper.x < lower.x < upper.x + upper.width


def test_four_within_a_second_stand_below_each_other() -> None:
    """Each of four near neighbours has its label, the latest above."""
    marks = [Mark(x, 300) for x in (160, 140, 120, 100)]
    assert rows_below(marks, 4) == [Place(row, 300) for row in range(4)]


def test_neighbours_with_room_share_a_row() -> None:
    """What does not meet stands beside each other."""
    marks = [Mark(800, 100), Mark(400, 100), Mark(100, 100)]
    assert rows_below(marks, 4) == [Place(0, 100)] * 3


def test_without_room_there_is_no_label() -> None:
    """The last of too many is left out, and what came first keeps its place."""
    marks = [Mark(x, 300) for x in (160, 140, 120)]
    assert rows_below(marks, 2) == [Place(0, 300), Place(1, 300), None]


def test_a_long_label_is_shortened_before_it_is_left_out() -> None:
    """It ends before the line of the next, which leads further down."""
    marks = [Mark(320, 300), Mark(300, 300), Mark(100, 400)]
    assert rows_below(marks, 2) == [Place(0, 300), Place(1, 300), Place(0, 194)]


@pytest.mark.parametrize("seed", range(50))
def test_any_marks_stand_clear(seed: int) -> None:
    """Wherever moments lie and in whatever order they matter, nothing is covered."""
    dice = random.Random(seed)
    marks = [Mark(dice.uniform(0, 900), dice.uniform(20, 300)) for _ in range(12)]
    places = rows_below(marks, 4)
    check_rows(marks, places)
    assert places[0] == Place(0, marks[0].width)
    in_time = sorted(marks)
    lefts = sides(in_time, 0, 1000)
    boxes = [
        (left, left + mark.width)
        for mark, left in zip(in_time, lefts, strict=True)
        if left is not None
    ]
    assert all(end <= start for (_, end), (start, _) in pairwise(boxes))
    for mark, left in zip(in_time, lefts, strict=True):
        lines = [other.x for other in in_time if other is not mark]
        assert left is None or not any(left < x < left + mark.width for x in lines)


def test_the_earlier_of_two_near_cuts_is_named_on_its_left() -> None:
    """Both labels are there, one on each side."""
    assert sides([Mark(300, 100), Mark(320, 100)], 92, 1000) == [200, 320]


def test_between_two_near_cuts_there_is_no_room() -> None:
    """The one in the middle keeps its line alone."""
    marks = [Mark(300, 100), Mark(320, 100), Mark(340, 100)]
    assert sides(marks, 92, 1000) == [200, None, 340]
