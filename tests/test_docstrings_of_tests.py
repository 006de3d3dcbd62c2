"""Each test says in a sentence what it proves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.gate

TESTS = Path(__file__).parent

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions_of(source: str) -> Iterator[Function]:
    """Yield the test functions of a file."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Function) and node.name.startswith("test_"):
            yield node


def says_too_little(test: Function) -> str:
    """Return what is wrong with a test's docstring, or nothing."""
    paragraph = (ast.get_docstring(test) or "").partition("\n\n")[0]
    if not paragraph:
        return "has no docstring"
    if not paragraph.endswith((".", ":", "?")):
        return "is no sentence"
    words = set(re.findall(r"[a-z]+", paragraph.lower()))
    if len(words - set(test.name.split("_"))) < 2:
        return "says no more than its name"
    return ""


def test_each_test_says_in_a_sentence_what_it_proves():
    """The first paragraph of its docstring is a sentence, and says more than the test's name."""
    found = [
        f"{path.relative_to(TESTS)}:{test.lineno} {test.name} {problem}"
        for path in sorted(TESTS.rglob("*.py"))
        for test in functions_of(path.read_text("utf-8"))
        if (problem := says_too_little(test))
    ]
    assert not found


@pytest.mark.parametrize(
    ("docstring", "problem"),
    [
        ("", "has no docstring"),
        ('"""what is cut, ended"""', "is no sentence"),
        ('"""A cut ends a run."""', "says no more than its name"),
        ('"""The model is left at once, and its run has one outcome."""', ""),
    ],
)
def test_a_docstring_that_says_too_little_is_found(docstring, problem):
    """One that is missing, is no sentence, or repeats the name."""
    (test,) = functions_of(f"def test_a_cut_ends_the_run():\n    {docstring}\n    assert 1")
    assert says_too_little(test) == problem
