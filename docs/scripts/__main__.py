"""Writes all that is generated; run ``python -m docs.scripts`` after names or numbers change."""

from __future__ import annotations

from pathlib import Path
from runpy import run_module

for path in sorted(Path(__file__).parent.glob("*_reference.py")):
    run_module(f"docs.scripts.{path.stem}", run_name="__main__")
