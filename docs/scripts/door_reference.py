"""Writes the modules of ``bargein`` that have what vendors have: its ears, voices, models, fakes.

Run ``python -m docs.scripts.door_reference`` after a vendor got a folder or a public name; a test
compares the modules with what this program would write.  Their docstrings are written by hand.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FACADES = ROOT / "bargein"

DOORS = {
    "ears": ("vendors.vendor_ear", ("ear", "transcription")),
    "fakes": ("testing.fakes", ("fake", "fake_*")),
    "llm": ("llm", ("chat",)),
    "realtime": ("realtime", ("realtime",)),
    "vendors": ("vendors", ("errors",)),
    "voices": ("vendors.vendor_voice", ("voice",)),
}
"""Each module: what all vendors share there, and which files of a vendor's folder it has."""


def folders() -> list[Path]:
    """Return the folder of each vendor."""
    found = (path.parent for path in (ROOT / "nodes" / "vendors").glob("*/__init__.py"))
    return sorted(found)


def page(door: str) -> Path:
    """Return the file of a module."""
    return FACADES / f"{door}.py"


def reference(door: str) -> str:
    """Return the text of a module."""
    text = page(door).read_text("utf-8")
    docstring = ast.parse(text).body[0]
    head = "\n".join(text.split("\n")[: docstring.end_lineno])
    imports, exported = [], []
    for module, names in sorted(_modules(door)):
        imports += [
            f"from .{module} import {name} as {name}\n" for name in sorted(names, key=_kind)
        ]
        exported += names
    listed = "".join(f'    "{name}",\n' for name in sorted(exported))
    return f"{head}\n\n{''.join(imports)}\n__all__ = [\n{listed}]\n"


def _modules(door: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the modules that a door shows, each with its public names."""
    shared, files = DOORS[door]
    place = ROOT / "nodes" / shared.replace(".", "/")
    source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    yield f"nodes.{shared}", _public(source)
    for folder in folders():
        for path in {path for name in files for path in folder.glob(f"{name}.py")}:
            yield f"nodes.vendors.{folder.name}.{path.stem}", _public(path)


def _public(path: Path) -> list[str]:
    """Return the names in ``__all__``; none without one."""
    for node in ast.parse(path.read_text("utf-8")).body:
        match node:
            case ast.Assign([ast.Name("__all__")], value):
                return list(ast.literal_eval(value))
    return []


def _kind(name: str) -> tuple[int, str]:
    """Sort as ruff does: constants, classes, the rest."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


if __name__ == "__main__":
    for each in DOORS:
        page(each).write_text(reference(each))
