"""What the tools package offers."""

import types

import nodes.tools


def test_all_is_what_is_exported():
    """__all__ is sorted and names every public thing of the package, and nothing else."""
    exported = {
        name
        for name, value in vars(nodes.tools).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    }
    assert sorted(nodes.tools.__all__) == list(nodes.tools.__all__)
    assert exported - {"annotations"} == set(nodes.tools.__all__)


def test_everything_public_is_documented():
    """Each class and function that users get has a docstring."""
    for name in nodes.tools.__all__:
        assert getattr(nodes.tools, name).__doc__, name
