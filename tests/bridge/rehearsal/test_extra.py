"""Tests of what is said when an extra is missing."""

import sys

import pytest

from bargein.bridge.rehearsal._extra import need
from bargein.rehearsal import RehearsalExtraError


def test_need_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that is not there is named, with the extra that brings it."""
    monkeypatch.setitem(sys.modules, "numpy", None)
    with pytest.raises(
        RehearsalExtraError, match=r'the picture needs \'numpy\'.*"bargein\[demo\]"'
    ):
        need("numpy", "the picture")


def test_need_returns_the_module() -> None:
    """A library that is there is returned."""
    assert need("math", "this test").pi > 3
