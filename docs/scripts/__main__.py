"""Writes all that is generated; run ``python -m docs.scripts`` after names or numbers change."""

from __future__ import annotations

from pathlib import Path
from runpy import run_module

DOORS = "door_reference"
"""First, since the pages show what the public modules have."""

names = {path.stem for path in Path(__file__).parent.glob("*_reference.py")}
for name in sorted(names, key=lambda name: (name != DOORS, name)):
    run_module(f"docs.scripts.{name}", run_name="__main__")
