"""The limits of a server."""

import pytest

from bargein.server import Limits


@pytest.mark.parametrize("name", ["max_calls", "messages_per_s", "silence_s", "drain_s"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
def test_a_bound_must_be_positive(name, value):
    """A bound of zero or less is an error that names it."""
    with pytest.raises(ValueError, match=f"{name} must be above 0"):
        Limits(**{name: value})


def test_none_disables_silence():
    """None is no bound."""
    assert Limits(silence_s=None).silence_s is None


def test_a_gap_may_be_switched_off_and_never_negative():
    """0 seconds to come back is a choice; less is a mistake."""
    assert Limits(resume_s=0).resume_s == 0
    with pytest.raises(ValueError, match="resume_s must be above 0"):
        Limits(resume_s=-1)


def test_what_may_be_watched_is_one_of_three_words():
    """Any other word is an error that lists them."""
    assert Limits(watch="off").watch == "off"
    with pytest.raises(ValueError, match="watch is one of 'off', 'events', 'words', not 'all'"):
        Limits(watch="all")
