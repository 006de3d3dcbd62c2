"""The limits of a server."""

import math

import pytest

from bargein.server import Limits


@pytest.mark.parametrize("name", ["max_calls", "messages_per_s", "silence_s", "drain_s"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_bound_must_be_positive(name, value):
    """A bound of zero or less is an error that names it."""
    with pytest.raises(ValueError, match=rf"Limits\({name}=\) is .* (above 0|from 1)"):
        Limits(**{name: value})


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("max_calls", None), ("max_calls", math.nan), ("stall_s", "10"), ("turn_burst", True)],
)
def test_a_bound_is_a_number(name, wrong):
    """What is no number of its kind is an error that names the bound, before any call needs it."""
    with pytest.raises(TypeError, match=rf"Limits\({name}=\) is a "):
        Limits(**{name: wrong})


@pytest.mark.parametrize("endless", [math.nan, math.inf])
def test_a_bound_is_finite(endless):
    """None is the way to say that there is no bound."""
    with pytest.raises(ValueError, match=r"silence_s=\) is a number above 0, or None, not "):
        Limits(silence_s=endless)


def test_none_disables_silence():
    """None is no bound."""
    assert Limits(silence_s=None).silence_s is None


def test_a_gap_may_be_switched_off_and_never_negative():
    """0 seconds to come back is a choice; less is a mistake."""
    assert Limits(resume_s=0).resume_s == 0
    with pytest.raises(ValueError, match=r"resume_s=\) is a number from 0"):
        Limits(resume_s=-1)


def test_what_may_be_watched_is_one_of_three_words():
    """Any other word is an error that lists them."""
    assert Limits(watch="off").watch == "off"
    with pytest.raises(ValueError, match="watch is one of 'off', 'events', 'words', not 'all'"):
        Limits(watch="all")
