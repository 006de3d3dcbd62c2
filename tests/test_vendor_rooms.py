"""A vendor is a folder: whoever adds one touches no other file by hand."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from docs.scripts import door_reference

pytestmark = pytest.mark.gate

FILES = {file for _, files in door_reference.DOORS.values() for file in files} - {"fake_*"}


@pytest.mark.parametrize("door", door_reference.DOORS)
def test_a_door_has_what_the_folders_of_vendors_have(door: str) -> None:
    """A public module holds what its program would write."""
    written = door_reference.page(door).read_text("utf-8")
    assert written == door_reference.reference(door), f"run: python -m {door_reference.__name__}"


@pytest.mark.parametrize("folder", door_reference.folders(), ids=lambda folder: folder.name)
def test_a_vendor_has_its_files_by_the_names_that_doors_know(folder: Path) -> None:
    """A public file that no door shows would be one that nobody can import."""
    doors = "".join(path.read_text("utf-8") for path in door_reference.FACADES.glob("*.py"))
    public = {path.stem for path in folder.glob("[!_]*.py")}
    shown = {name for name in public if f".vendors.{folder.name}.{name} import" in doors}
    assert {name for name in public if not name.startswith("fake_")} <= FILES | shown


@pytest.mark.parametrize("folder", door_reference.folders(), ids=lambda folder: folder.name)
def test_a_vendor_loads_one_part_at_a_time(folder: Path) -> None:
    """Its package is a docstring: whoever uses its ear loads no HTTP client for its models."""
    (docstring,) = ast.parse((folder / "__init__.py").read_text("utf-8")).body
    assert isinstance(docstring, ast.Expr)
