"""The API reference has every public class with all its methods, and what it lists exists.

The site shows what is exported and has a docstring (`filters: public`), and what is inherited.
The quick tests ask griffe, from which the site gets its members; the proof reads the inventory that
`make docs` writes (`tests/test_site.py`).
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import griffe
import pytest
import yaml

from docs.scripts.site import facades

pytestmark = pytest.mark.gate

ROOT = Path(__file__).parents[1]
OURS = ("bargein", "bridge", "nodes", "routes")

_ATTRIBUTES = re.compile(r"^Attributes:\n((?:[ ].*\n?|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^    (\w+)(?: \([^)]*\))?:", re.MULTILINE)


def exported_classes() -> Iterator[tuple[str, type[Any]]]:
    """Yield each class that a façade exports, by its public name."""
    for module in facades().values():
        for name in import_module(module).__all__:
            exported = getattr(import_module(module), name)
            if inspect.isclass(exported):
                yield f"{module}.{name}", exported


def public_methods(cls: type[Any]) -> Iterator[str]:
    """Yield the names of the methods and properties of a class that are public and ours."""
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] in OURS:
            for name, value in vars(base).items():
                if name[0] != "_" and _is_method(value):
                    yield name


def documented(text: str) -> list[str]:
    """Return the names under ``Attributes:`` of a docstring."""
    found = _ATTRIBUTES.search(text)
    return _ENTRY.findall(found[1]) if found else []


def _is_method(value: object) -> bool:
    kinds = (property, classmethod, staticmethod)
    return inspect.isfunction(value) or isinstance(value, kinds)


@cache
def _source_of(cls: type[Any]) -> ast.Module:
    return ast.parse(inspect.cleandoc("\n" + inspect.getsource(cls)))


def _assigned(cls: type[Any]) -> set[str]:
    """Return what the methods of a class, and of those that it is made of, assign to ``self``."""
    found: set[str] = set()
    for base in cls.__mro__:
        if base.__module__.partition(".")[0] in OURS:
            for node in ast.walk(_source_of(base)):
                match node:
                    case ast.Attribute(ast.Name("self"), name, ast.Store()):
                        found.add(name)
            found.update(inspect.get_annotations(base))
    return found


def _options() -> dict[str, Any]:
    """Return the options of the reference in mkdocs.yml."""
    config = yaml.load((ROOT / "mkdocs.yml").read_text(), Loader=yaml.BaseLoader)
    [plugin] = [p["mkdocstrings"] for p in config["plugins"] if "mkdocstrings" in p]
    options: dict[str, Any] = plugin["handlers"]["python"]["options"]
    return options


def test_the_reference_shows_all_that_is_public() -> None:
    """The options of the site leave out nothing that is public, inherited members included.

    A list in ``filters`` are patterns of names: ``[public]`` once hid all but four of 758 methods.
    """
    assert _options()["filters"] == "public"
    assert _options()["inherited_members"] == "true"


def test_every_public_method_is_in_the_reference() -> None:
    """Each public method of an exported class is public for griffe and has a docstring."""
    [file] = _options()["extensions"]
    loaded = griffe.load(
        "bargein",
        search_paths=[str(ROOT)],
        extensions=griffe.load_extensions(str(ROOT / file)),
        resolve_aliases=True,
    )
    missing = []
    for path, cls in exported_classes():
        members = loaded[path.removeprefix("bargein.")].all_members
        for name in sorted(set(public_methods(cls))):
            member = members.get(name)
            if member is None or not member.is_public or not member.has_docstring:
                missing.append(f"{path}.{name}")
    assert missing == []


def test_every_attribute_that_a_docstring_lists_exists() -> None:
    """Each name under ``Attributes:`` is a member of its class, or assigned by it."""
    missing = [
        f"{path}.{name}"
        for path, cls in exported_classes()
        for name in documented(inspect.getdoc(cls) or "")
        if not hasattr(cls, name) and name not in _assigned(cls)
    ]
    assert missing == []
