"""Draws the measurements: the rows beside their goals, and the replays that missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bargein.bridge.rehearsal.canvas import GRID, MUTED, Canvas

from ._measurement_table import MeasurementRow, number

WIDTH = 1200
MOST_LANES = 12
"""How many replays a picture shows at most."""

_LANE, _BAR, _LEFT = 84, 24, 300
_NAMES = 470
"""How wide the names of the rows are in the summary."""

_LABEL_LINES = 4
_SECONDS = 5.0
_BEFORE_S = 0.5
_QUIETEST_DB = -70.0
_STATES = {"plays": "#4c78a8", "held": "#f2b134", "empty": "#cccccc"}
"""The colour of each state of the loudspeaker."""

_GOOD, _BAD = "#3a923a", "#c44e52"


def draw(
    rows: Sequence[MeasurementRow], replays: Sequence[Mapping[str, Any]], out: Path
) -> list[Path]:
    """Write the pictures into a folder, and return their files.

    Args:
        rows: The measurements.
        replays: The facts of each replay over a speaking agent.
        out: The folder; created if it does not exist.

    Raises:
        RehearsalExtraError: Pillow is not installed.
    """
    out.mkdir(parents=True, exist_ok=True)
    pictures = {"summary": _summary([row for row in rows if row.bound is not None])}
    kinds: dict[str, list[Mapping[str, Any]]] = {}
    for facts in filter(_is_miss, replays):
        name = "-".join(filter(None, (facts["kind"], facts.get("condition", ""))))
        kinds.setdefault(name, []).append(facts)
    for name, missed in kinds.items():
        noun = "replay" if len(missed) == 1 else "replays"
        title = f"{name}: {len(missed)} {noun} that missed"
        pictures[name] = _lanes(title, missed[:MOST_LANES])
    for name, canvas in pictures.items():
        canvas.save(out / f"{name}.png")
    return [out / f"{name}.png" for name in pictures]


def _is_miss(facts: Mapping[str, Any]) -> bool:
    if facts["no_word"]:
        return facts["cut_s"] is not None
    return facts["cut_s"] is None or facts["talked_on_s"] > facts["talks_on_above_s"]


def _summary(rows: Sequence[MeasurementRow]) -> Canvas:
    """Draw a bar for each goal; the line is the goal."""
    names = [f"{row.case}: {row.what}" for row in rows]
    height, room = 40 + len(rows) * _BAR, WIDTH - _NAMES - 130
    goal_x = _NAMES + room / 2
    canvas = Canvas(WIDTH, height, names)
    for place, (row, name) in enumerate(zip(rows, names, strict=True)):
        y = 30 + place * _BAR
        assert row.bound is not None
        figure = row.figure if row.figure is not None else 2 * row.bound + 1
        # The goal stands in the middle; a goal of 0 is missed by any figure above it.
        share = figure / row.bound if row.bound else 2.0 * (figure > 0)
        length = max(min(share, 2.0) * room / 2, 1)
        told = "not measured" if row.figure is None else f"{number(row.figure)} {row.unit}"
        size = min(12.0, 24 * (_NAMES - 16) // canvas.text_width(name, 12) / 2)  # always whole
        canvas.text(_NAMES - 8, y + 12, name, size, anchor="rm")
        color = _GOOD if row.passed else _BAD
        canvas.bar((_NAMES, y + 4, _NAMES + length, y + _BAR - 4), color)
        canvas.text(WIDTH - 122, y + 12, f"{told} (max {number(row.bound)})", 12, anchor="lm")
    canvas.dashes(goal_x, 24, height - 8, "#333")
    canvas.text(goal_x, 18, "goal", 12, anchor="ms")
    return canvas


def _lanes(title: str, replays: Sequence[Mapping[str, Any]]) -> Canvas:
    """Draw replays: the microphone, the loudspeaker, and the decisions with their rules."""
    below = 34 + len(replays) * _LANE
    texts = [text for facts in replays for text in (facts["name"], *facts["texts"])]
    canvas = Canvas(WIDTH, below + 22, texts)
    canvas.text(8, 13, title, 12, anchor="lm")
    for n, (name, color) in enumerate(_STATES.items()):
        left = _LEFT + 90 * n
        canvas.bar((left, 9, left + 14, 17), color)
        canvas.text(left + 19, 13, name, 12, anchor="lm")
    for second in range(int(_SECONDS)):
        x = _x(second)
        canvas.line((x, 28, x, below), GRID)
        canvas.text(x, below + 4, f"{second} s", 10, anchor="ma")
    for place, facts in enumerate(replays):
        _lane(canvas, facts, 34 + place * _LANE)
    return canvas


def _lane(canvas: Canvas, facts: Mapping[str, Any], y: float) -> None:
    room = _LEFT - 16
    canvas.paragraph(8, y + 4, facts["name"], 12, width=room, limit=1)
    texts = " / ".join(facts["texts"])
    canvas.paragraph(8, y + 20, texts, 12, MUTED, width=room, limit=3)
    for place, db in enumerate(facts["microphone_db"]):
        at_s = place * facts["step_s"] - facts["begins_s"]
        high = max(0.0, 1 - db / _QUIETEST_DB) * 22
        if _is_shown(at_s):
            canvas.bar((_x(at_s), y + 24 - high, _x(at_s) + 3, y + 24), "#999")
    for state, from_s, to_s in facts["loudspeaker"]:
        left, right = max(from_s, -_BEFORE_S), min(to_s, _SECONDS - _BEFORE_S)
        if left < right:
            canvas.bar((_x(left), y + 26, _x(right), y + 34), _STATES[state])
    ends = [0.0] * _LABEL_LINES
    for at_s, _, decision, rule, _ in facts["decisions"]:
        if _is_shown(at_s):
            label, x = f"{decision}: {rule}", _x(at_s)
            canvas.line((x, y, x, y + 36), "#333")
            width = canvas.text_width(label, 9)
            x = min(x + 2, WIDTH - 4 - width)
            line = next((n for n, end in enumerate(ends) if end <= x), _LABEL_LINES - 1)
            ends[line] = x + width + 4
            canvas.text(x, y + 37 + 10 * line, label, 9)


def _is_shown(at_s: float) -> bool:
    return -_BEFORE_S <= at_s < _SECONDS - _BEFORE_S


def _x(at_s: float) -> float:
    return _LEFT + (at_s + _BEFORE_S) * (WIDTH - _LEFT - 8) / _SECONDS
