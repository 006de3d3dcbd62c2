"""A file has one concept and a function one purpose: neither grows past what one reads at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.gate

ROOT = Path(__file__).parents[1]

MOST_LINES = 500
"""Of a file; most have 150 to 250."""

MOST_FUNCTION_LINES = 60
"""Of a function's body, without its docstring; most have a dozen."""

SCRIPTS = ("*.py", "*.js")


def sources(*patterns: str) -> Iterator[Path]:
    """Yield the files of the framework that match, in order."""
    for folder in ("bridge", "nodes", "routes"):
        for pattern in patterns:
            yield from sorted((ROOT / folder).rglob(pattern))


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines a function has from its first statement to its last."""
    statements = function.body[1:] if ast.get_docstring(function) else function.body
    return statements[-1].end_lineno - statements[0].lineno + 1 if statements else 0


def test_no_file_is_long():
    """A file that grows past the bound is split where its second concept begins."""
    found = [
        str(path.relative_to(ROOT))
        for path in sources(*SCRIPTS)
        if len(path.read_text().splitlines()) > MOST_LINES
    ]
    assert not found, "split the file"


def test_no_function_is_long():
    """A function that grows past the bound becomes several, each with a name for what it does."""
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}() has {body_lines(node)} lines"
        for path in sources("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and body_lines(node) > MOST_FUNCTION_LINES
    ]
    assert not found
