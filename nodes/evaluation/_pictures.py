"""Draws the measurements as SVG: the rows beside their goals, and the replays that missed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ._table import MeasurementRow, number

WIDTH = 1200
MOST_LANES = 12
"""How many replays a picture shows at most."""

_LANE, _BAR, _LEFT = 84, 24, 300
_NAMES = 470
"""How wide the names of the rows are in the summary."""

_LETTER = 5.5
"""The largest average width of a letter in a label."""

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
    files = []
    for name, svg in pictures.items():
        files.append(out / f"{name}.svg")
        files[-1].write_text(svg, encoding="utf-8")
    return files


def _is_miss(facts: Mapping[str, Any]) -> bool:
    if facts["no_word"]:
        return facts["cut_s"] is not None
    return facts["cut_s"] is None or facts["talked_on_s"] > facts["talks_on_above_s"]


def _summary(rows: Sequence[MeasurementRow]) -> str:
    """Draw a bar for each goal; the line is the goal."""
    parts = []
    room = WIDTH - _NAMES - 130
    goal_x = _NAMES + room / 2
    for place, row in enumerate(rows):
        y = 30 + place * _BAR
        assert row.bound is not None
        figure = row.figure if row.figure is not None else 2 * row.bound + 1
        # The goal stands in the middle; a goal of 0 is missed by any figure above it.
        share = figure / row.bound if row.bound else 2.0 * (figure > 0)
        length = min(share, 2.0) * room / 2
        color = _GOOD if row.passed else _BAD
        told = "not measured" if row.figure is None else f"{number(row.figure)} {row.unit}"
        name = f"{row.case}: {row.what}"
        parts.append(_text(_NAMES - 8, y + 15, name, anchor="end"))
        parts.append(_bar(_NAMES, y + 4, max(length, 1), _BAR - 8, color))
        parts.append(_text(WIDTH - 122, y + 15, f"{told} (≤ {number(row.bound)})"))
    height = 40 + len(rows) * _BAR
    parts.append(f'<path d="M{goal_x} 24V{height - 8}" stroke="#333" stroke-dasharray="4"/>')
    parts.append(_text(goal_x, 18, "goal", anchor="middle"))
    return _svg(height, parts)


def _lanes(title: str, replays: Sequence[Mapping[str, Any]]) -> str:
    """Draw replays: the microphone, the loudspeaker, and the decisions with their rules."""
    parts = [_text(8, 18, title)]
    for n, (name, color) in enumerate(_STATES.items()):
        left = _LEFT + 90 * n
        parts += [_bar(left, 9, 14, 8, color), _text(left + 19, 18, name)]
    below = 34 + len(replays) * _LANE
    for second in range(int(_SECONDS)):
        x = _x(second)
        parts.append(f'<path d="M{x:.0f} 28V{below}" stroke="#e4e4e4"/>')
        parts.append(_text(x, below + 14, f"{second} s", anchor="middle", size=10))
    for place, facts in enumerate(replays):
        parts += _lane(facts, 34 + place * _LANE)
    return _svg(below + 22, parts)


def _lane(facts: Mapping[str, Any], y: float) -> list[str]:
    texts = " / ".join(facts["texts"])
    parts = [_text(8, y + 16, facts["name"][:34]), _text(8, y + 32, texts[:40])]
    for place, db in enumerate(facts["microphone_db"]):
        at_s = place * facts["step_s"] - facts["begins_s"]
        high = max(0.0, 1 - db / _QUIETEST_DB) * 22
        if _is_shown(at_s):
            parts.append(_bar(_x(at_s), y + 24 - high, 3, high, "#999"))
    for state, from_s, to_s in facts["loudspeaker"]:
        left, right = max(from_s, -_BEFORE_S), min(to_s, _SECONDS - _BEFORE_S)
        if left < right:
            parts.append(_bar(_x(left), y + 26, _x(right) - _x(left), 8, _STATES[state]))
    ends = [0.0] * _LABEL_LINES
    for at_s, _, decision, rule, _ in facts["decisions"]:
        if _is_shown(at_s):
            label, x = f"{decision}: {rule}", _x(at_s)
            parts.append(f'<path d="M{x:.0f} {y:.0f}v36" stroke="#333"/>')
            x = min(x + 2, WIDTH - 4 - _LETTER * len(label))
            line = next((n for n, end in enumerate(ends) if end <= x), _LABEL_LINES - 1)
            ends[line] = x + _LETTER * len(label)
            parts.append(_text(x, y + 45 + 10 * line, label, size=9))
    return parts


def _is_shown(at_s: float) -> bool:
    return -_BEFORE_S <= at_s < _SECONDS - _BEFORE_S


def _x(at_s: float) -> float:
    return _LEFT + (at_s + _BEFORE_S) * (WIDTH - _LEFT - 8) / _SECONDS


def _bar(x: float, y: float, width: float, height: float, fill: str) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} fill="{fill}"/>'


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    place = f'x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="#222" font-size="{size}"'
    return f"<text {place}>{escape(text)}</text>"


def _svg(height: float, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:.0f}"'
    back = '<rect width="100%" height="100%" fill="white"/>'
    return f'{head} font-family="sans-serif">{back}{"".join(parts)}</svg>\n'
