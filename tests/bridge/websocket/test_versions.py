"""Which versions of websockets live beside us, and what of them is used."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
[PIN] = [each for each in PYPROJECT["project"]["dependencies"] if each.startswith("websockets")]

RUNTIMES = ("asyncio", "legacy", "sync", "trio")
"""The packages of websockets that drive a socket themselves."""


def imported() -> Iterator[str]:
    """Yield the modules that our code imports, anywhere in a file."""
    for room in ("bargein", "bridge", "nodes", "routes"):
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.Import):
                    yield from (name.name for name in node.names)
                elif isinstance(node, ast.ImportFrom) and not node.level:
                    yield from (f"{node.module}.{name.name}" for name in node.names)


def test_the_oldest_that_may_be_installed_is_tested() -> None:
    """The lower bound of the pin is what `make oldest` installs by its lock; .ci/run runs it."""
    oldest = re.fullmatch(r"websockets>=([\d.]+),<18", PIN)
    assert oldest is not None, PIN
    lock = "requirements/oldest-websockets.txt"
    assert f"--require-hashes -r {lock}" in (ROOT / "Makefile").read_text("utf-8")
    assert re.findall(r"^\w[^ ]*", (ROOT / lock).read_text("utf-8"), re.MULTILINE) == [
        f"websockets=={oldest[1]}"
    ]
    assert "oldest" in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.proof
def test_only_the_protocol_of_websockets_is_used() -> None:
    """None of the code that drives a socket itself, which changes from version to version."""
    ours = {name for name in imported() if name.startswith("websockets")}
    assert "websockets.protocol.State" in ours
    assert not {name for name in ours if name.split(".")[1] in RUNTIMES}
