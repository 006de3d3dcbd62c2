"""Writes docs/pictures/states.svg: the states of a call, and the verbs that lead between them.

Run ``python -m docs.scripts.state_picture`` after a change; a test compares the picture with what
this program would write.  The verbs come from the table of states itself, and only the places from
here: a step that no arrow has, or an arrow without a verb, is an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bargein.bridge._verbs import VERBS
from bargein.bridge.control._call_state import STATES, TABLE
from bargein.events import CallState

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pictures" / "states.svg"

WAITING: tuple[CallState, ...] = ("speaking", "tool", "waiting_permission", "waiting_input")
AT_WORK: tuple[CallState, ...] = ("thinking", *WAITING)
HELD: tuple[CallState, ...] = ("pausing", "paused")
GROUPS: dict[str, tuple[CallState, ...]] = {
    "at rest": ("idle", "listening"),
    "an answer": (*AT_WORK, *HELD),
    "at work": AT_WORK,
    "held": HELD,
    "the others at work": WAITING,
    **{state: (state,) for state in STATES},
}
"""The states that an arrow may leave together, because the same verbs lead out of them."""


class Box(NamedTuple):
    """Where a state or a group of states is drawn."""

    x: int
    y: int
    width: int
    height: int


BOXES = {
    "idle": Box(64, 174, 110, 44),
    "listening": Box(64, 312, 110, 44),
    "thinking": Box(403, 112, 160, 44),
    "speaking": Box(388, 230, 190, 40),
    "tool": Box(388, 278, 190, 40),
    "waiting_permission": Box(388, 326, 190, 40),
    "waiting_input": Box(388, 374, 190, 40),
    "paused": Box(754, 112, 126, 44),
    "pausing": Box(754, 296, 126, 44),
    "stopping": Box(403, 530, 160, 44),
    "closed": Box(724, 530, 110, 44),
}
FRAMES = {
    "at rest": Box(44, 84, 150, 294),
    "an answer": Box(320, 30, 600, 426),
    "at work": Box(358, 76, 250, 362),
    "held": Box(732, 76, 170, 362),
    "the others at work": Box(378, 220, 210, 204),
}
TITLES = {
    "at rest": (119, 107, "at rest"),
    "an answer": (620, 54, "an answer is under way"),
    "at work": (483, 99, "at work"),
    "held": (817, 99, "paused"),
}
ARROWS = {
    ("at rest", "thinking"): ("M194 134H399", 257, 125),
    ("at rest", "stopping"): ("M119 378V540H399", 262, 531),
    ("an answer", "idle"): ("M320 196H178", 257, 187),
    ("an answer", "listening"): ("M320 334H178", 257, 325),
    ("an answer", "stopping"): ("M500 456V526", 636, 498),
    ("the others at work", "thinking"): ("M483 220V160", 517, 194),
    ("at work", "pausing"): ("M608 318H750", 668, 309),
    ("held", "thinking"): ("M732 134H567", 670, 125),
    ("stopping", "thinking"): ("M446 530V484H339V148H399", 393, 501),
}
"""The path of each arrow that verbs make, and the middle of its words."""

OTHERWISE = {
    ("pausing", "paused"): ("M774 296V160", 832, 232, "its tool is over"),
    ("stopping", "idle"): ("M403 562H24V196H60", 262, 582, "the work is over"),
    ("stopping", "closed"): ("M563 552H720", 640, 543, "the call is over"),
}
"""The arrows of what follows without a verb."""


def reference() -> str:
    """Return the picture."""
    lines = [HEAD.format(description=" ".join(sentences()))]
    lines += [_rectangle(box, 'rx="14" class="frame"') for box in FRAMES.values()]
    lines += [_rectangle(box, 'rx="10" class="state"') for box in BOXES.values()]
    for start, end in ARROWS:
        path, x, y = ARROWS[start, end]
        kind = "stop" if end == "stopping" else "step"
        lines.append(f'  <path class="{kind}" d="{path}" marker-end="url(#{kind})"/>')
        lines.append(_words(x, y, ", ".join(verbs(start, end)), f"{kind} words"))
    for path, x, y, why in OTHERWISE.values():
        lines.append(f'  <path class="step otherwise" d="{path}" marker-end="url(#step)"/>')
        lines.append(_words(x, y, why, "title"))
    lines += [_words(x, y, title, "title") for x, y, title in TITLES.values()]
    for name, box in BOXES.items():
        lines.append(_words(box.x + box.width // 2, box.y + box.height // 2 + 5, name, "name"))
    return "\n".join([*lines, ENDS, "</svg>\n"])


def verbs(start: str, end: str) -> list[str]:
    """Return the verbs that lead from each state of a group to another state."""
    states = [state for state in GROUPS[start] if state != end]
    return [verb for verb in VERBS if all(TABLE[s].verbs[verb].to == end for s in states)]


def steps() -> Iterator[tuple[str, str, str]]:
    """Yield each step of the picture that a verb makes: the state, the verb and the next state."""
    for start, end in ARROWS:
        for state in GROUPS[start]:
            if state != end:
                yield from ((state, verb, end) for verb in verbs(start, end))


def sentences() -> Iterator[str]:
    """Yield the picture in words, for those who do not see it."""
    yield "A call begins in the state idle."
    for state in STATES:
        leads = {end: [v for s, v, e in steps() if (s, e) == (state, end)] for end in STATES}
        ways = [f"{' and '.join(found)} to {end}" for end, found in leads.items() if found]
        if ways:
            yield f"From {state}: {', '.join(ways)}."
    for (start, end), (*_, why) in OTHERWISE.items():
        yield f"From {start} to {end}, once {why}."


def _rectangle(box: Box, rest: str) -> str:
    return f'  <rect x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" {rest}/>'


def _words(x: int, y: int, words: str, kind: str) -> str:
    return f'  <text x="{x}" y="{y}" class="{kind}">{words}</text>'


HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 944 604" font-family="system-ui, sans-serif" \
font-size="14" text-anchor="middle" role="img" aria-labelledby="title description">
  <title id="title">The states of a call, and the verbs that lead from one to another</title>
  <desc id="description">{description}</desc>
  <style>
    .frame {{ fill: #e2e8f0; fill-opacity: 0.45; stroke: #94a3b8; }}
    .state {{ fill: #ffffff; stroke: #334155; stroke-width: 1.5; }}
    path {{ fill: none; stroke: #334155; stroke-width: 1.8; }}
    path.stop {{ stroke: #b91c1c; stroke-width: 2.2; }}
    path.otherwise {{ stroke-dasharray: 5 4; }}
    .words {{ fill: #0f172a; }}
    .words.stop {{ fill: #b91c1c; }}
    .title {{ fill: #475569; }}
    .name {{ fill: #0f172a; font-size: 15px; font-weight: 600; }}
  </style>
  <defs>
    <marker id="step" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0L10 5L0 10z" style="fill: #334155; stroke: none"/></marker>
    <marker id="stop" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0 0L10 5L0 10z" style="fill: #b91c1c; stroke: none"/></marker>
  </defs>
  <rect width="944" height="604" rx="12" fill="#f8fafc"/>"""

ENDS = """\
  <circle cx="24" cy="148" r="7" fill="#0f172a"/>
  <path class="step otherwise" d="M31 148H119V170" marker-end="url(#step)"/>
  <path class="step otherwise" d="M834 552H876" marker-end="url(#step)"/>
  <circle cx="888" cy="552" r="9" fill="none" stroke="#0f172a" stroke-width="1.8"/>
  <circle cx="888" cy="552" r="5" fill="#0f172a"/>"""


if __name__ == "__main__":
    PAGE.write_text(reference())
