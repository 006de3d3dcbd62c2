"""Writes the table of rooms in docs/design.md, from the first sentence of each folder's docstring.

Run ``python -m docs.scripts.room_reference`` after a folder got another docstring, or a new one
came; a test compares the table with what this program would write.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "design.md"
HEADING = "## The rooms\n"

OTHERS = {
    "bridge/page": "The page that people talk to, in JavaScript that a browser loads as it is."
}
"""Folders without Python, and what is in them."""

VENDORS = "nodes/vendors/"
"""Each folder in it is a vendor's, and has the same."""


def rooms() -> dict[str, str]:
    """Return each folder of the source, and what it has."""
    paths = [path for top in ("bridge", "nodes", "routes") for path in _folders(ROOT / top)]
    said = {str(path.relative_to(ROOT)): _first_sentence(path / "__init__.py") for path in paths}
    mine = {room: text for room, text in said.items() if not room.startswith(VENDORS)}
    return dict(sorted({**mine, **OTHERS}.items()))


def _folders(top: Path) -> list[Path]:
    return [path.parent for path in top.rglob("__init__.py")]


def _first_sentence(path: Path) -> str:
    text = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(text.partition("\n\n")[0].split()).replace("``", "`")


def reference() -> str:
    """Return the text of the page."""
    before, _, rest = PAGE.read_text("utf-8").partition(HEADING)
    behind = rest[rest.index("\n[The glossary]") :]
    rows = "".join(f"| `{room}/` | {text.rstrip('.')} |\n" for room, text in rooms().items())
    return f"{before}{HEADING}\n| folder | what is in it |\n|---|---|\n{rows}{behind}"


if __name__ == "__main__":
    PAGE.write_text(reference(), "utf-8")
