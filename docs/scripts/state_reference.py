"""Writes the table of the states and verbs into docs/control.md.

Run ``python -m docs.scripts.state_reference`` after a change; a test compares the page with what
this program would write.
"""

from __future__ import annotations

from pathlib import Path

from bargein.bridge.control._call_state import STATES, TABLE
from bargein.bridge.control.verbs import ROWS
from bargein.bridge.control.verbs._verb_row import Cell

PAGE = Path(__file__).parents[2] / "docs" / "control.md"
BEGIN = "| state | people see |"
END = "\n\nEach change publishes"


def reference() -> str:
    """Return the text of the page, with the table in place of the one that it has."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    return f"{before}{table()}{END}{rest.partition(END)[2]}"


def table() -> str:
    """Return the table: a row for each state, a column for each verb, and what never follows.

    Below it stand the reasons for which a verb does nothing.
    """
    reasons: list[str] = []
    lines = [f"{BEGIN} {' | '.join(f'`{verb}`' for verb in ROWS)} | never follows |"]
    lines.append("|---" * (len(ROWS) + 3) + "|")
    for state in STATES:
        row = TABLE[state]
        cells = [_cell(row.verbs[verb], reasons) for verb in ROWS]
        never = "anything" if set(row.never) == set(STATES) else ", ".join(row.never)
        lines.append(f"| `{state}` | {row.words} | {' | '.join(cells)} | {never} |")
    told = (f"{number}. {reason}" for number, reason in enumerate(reasons, 1))
    return "\n".join([*lines, "", *told])


def _cell(cell: Cell, reasons: list[str]) -> str:
    if cell.reason and cell.reason not in reasons:
        reasons.append(cell.reason)
    number = f"({reasons.index(cell.reason) + 1})" if cell.reason else ""
    return f"{cell.to or ''} {number}".strip()


if __name__ == "__main__":
    PAGE.write_text(reference(), "utf-8")
