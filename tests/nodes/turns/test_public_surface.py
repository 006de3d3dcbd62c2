"""What bargein.user_turns offers."""

from __future__ import annotations

import types

from bargein.nodes import turns


def test_all_is_what_is_exported():
    """__all__ is sorted and names every public thing of the package, and nothing else."""
    exported = {
        name
        for name, value in vars(turns).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert sorted(turns.__all__) == list(turns.__all__)
    assert exported - {"annotations"} == set(turns.__all__)


def test_everything_public_is_documented():
    """Each class and function that users get has a docstring."""
    for name in turns.__all__:
        assert getattr(turns, name).__doc__, name
