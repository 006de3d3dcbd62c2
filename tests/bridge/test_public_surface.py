"""What the bridge package offers."""

import types

import bridge


def test_all_is_what_is_exported():
    """__all__ is sorted and names every public thing of the package, and nothing else."""
    exported = {
        name
        for name, value in vars(bridge).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert sorted(bridge.__all__) == list(bridge.__all__)
    assert exported - {"annotations"} == set(bridge.__all__)


def test_everything_public_is_documented():
    """Each class and function that users get has a docstring."""
    for name in bridge.__all__:
        assert getattr(bridge, name).__doc__, name
