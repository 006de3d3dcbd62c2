"""Checks what the detectors of an ear, which are user code, return."""

from __future__ import annotations


def no_probability(*said: tuple[object, float]) -> ValueError:
    """Return the error for the first detector that did not return a probability.

    NaN would be neither voice nor silence, so a turn would never end.

    Args:
        *said: Each detector and its result; at least one is not a probability.
    """
    detector, wrong = next(one for one in said if not one[1] >= 0.0)
    return ValueError(f"{type(detector).__name__}.probability() is 0 to 1, not {wrong!r}")
