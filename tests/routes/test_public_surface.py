"""The façade of the package."""

import routes


def test_all_is_sorted_and_complete():
    """`__all__` is sorted and names exactly what the package exports."""
    exported = {
        name
        for name, value in vars(routes).items()
        if not name.startswith("_") and not isinstance(value, type(routes))
    }
    assert routes.__all__ == sorted(routes.__all__)
    assert set(routes.__all__) == exported


def test_every_public_thing_is_documented():
    """Everything that is exported, and each public method of it, has a docstring."""
    for name in routes.__all__:
        thing = getattr(routes, name)
        if thing is routes.Outcome:
            continue  # a Literal cannot carry one
        assert thing.__doc__, name
        for attribute, value in vars(thing).items() if isinstance(thing, type) else ():
            if not attribute.startswith("_") and callable(value):
                assert value.__doc__, f"{name}.{attribute}"
