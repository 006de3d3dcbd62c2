"""The bounds of `ListeningSettings`."""

from __future__ import annotations

import math

import pytest

from bargein.speech import ListeningSettings


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("speech_above", 0.0, ValueError),  # each silence would be voice
        ("speech_above", 1.1, ValueError),
        ("silence_below", -0.1, ValueError),
        ("silence_below", "0.3", TypeError),
        ("quietest_peak_dbfs", 1.0, ValueError),
        ("quietest_peak_dbfs", math.nan, ValueError),
        ("quietest_peak_dbfs", None, TypeError),
        ("below_caller_db", -1.0, ValueError),
        ("below_caller_db", "12", TypeError),
        ("above_background_db", math.inf, ValueError),
        ("onset_windows", 0, ValueError),
        ("onset_windows", 1.5, TypeError),
        ("stop_windows", 0, ValueError),
        ("pause_s", math.nan, ValueError),
        ("pause_s", -0.1, ValueError),
        ("pre_roll_s", -1.0, ValueError),
        ("pre_roll_s", 1e9, ValueError),
    ],
)
def test_wrong_numbers_fail_when_made(name, value, error):
    """The error names the setting; with such a number a call would be deaf, or never silent."""
    with pytest.raises(error, match=rf"ListeningSettings\({name}="):
        ListeningSettings(**{name: value})


def test_the_bounds_themselves_are_allowed():
    """None switches a comparison off; a threshold may be 1."""
    ListeningSettings(below_caller_db=None, above_background_db=None, pre_roll_s=0.0)
    ListeningSettings(speech_above=1.0, silence_below=1.0, onset_windows=1, stop_windows=1)
