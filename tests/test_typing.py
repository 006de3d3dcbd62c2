"""The check of what type checkers say to users can fail (``make lint`` runs it)."""

from __future__ import annotations

import json

import pytest

from tests.typing import __main__ as typing_check

WRONG = ("tests/typing/wrong/mistakes_in_tests.py", 12, "arg-type")


def test_what_is_expected_and_found_is_no_difference():
    """An error in its line, by its rule, is what was wanted."""
    assert typing_check.differences([WRONG], [(WRONG, "an error")]) == []


@pytest.mark.parametrize(
    ("found", "lines"),
    [
        ([], ["no arg-type, which is expected"]),
        ([((*WRONG[:2], "attr-defined"), "m")], ["attr-defined: m", "no arg-type"]),
        ([((WRONG[0], 13, "arg-type"), "m")], ["13: arg-type: m", "12: no arg-type"]),
        ([(WRONG, "m"), (("README.md", 1, "misc"), "m")], ["README.md:1: misc: m"]),
    ],
    ids=["nothing", "another rule", "another line", "one more"],
)
def test_each_difference_is_told(found, lines):
    """What is missing, elsewhere, or too much is told with its place."""
    told = typing_check.differences([WRONG], found)
    assert len(told) == len(lines)
    assert all(part in line for part, line in zip(lines, told, strict=True))


def test_each_mistake_of_the_user_files_has_rules_of_both():
    """Each line of ``wrong/`` that is marked names a rule of mypy and one of pyright."""
    rules: dict[tuple[str, int], list[str]] = {}
    for file, line, rule in typing_check.expected():
        rules.setdefault((file, line), []).append(rule)
    assert len(rules) > 30
    for place, names in rules.items():
        assert {name.startswith("report") for name in names} == {True, False}, place


def test_both_outputs_are_read():
    """Errors of mypy and of pyright are found in what they write."""
    text = f"{WRONG[0]}:12: error: Argument 1 has [odd] type  [arg-type]\nFound 1 error\n"
    assert [error for error, _ in typing_check.of_mypy(text)] == [WRONG]
    found = {
        "file": str(typing_check.ROOT / WRONG[0]),
        "range": {"start": {"line": 11, "character": 0}},
        "rule": "reportArgumentType",
        "message": "m",
    }
    text = json.dumps({"generalDiagnostics": [found]})
    assert list(typing_check.of_pyright(text)) == [((*WRONG[:2], "reportArgumentType"), "m")]
