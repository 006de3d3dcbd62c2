"""Checks of numbers that people give, with an error that names what was given."""

from __future__ import annotations

import math


def check_seconds(what: str, value: object, *, optional: bool = False, above: float = -1.0) -> None:
    """Raise when a value is no time in seconds.

    Args:
        what: Names it in the error.
        value: What was given.
        optional: Whether None is a value.
        above: What it has to be above; by default 0 is fine.

    Raises:
        TypeError: It is no number.
        ValueError: It is negative, infinite, or no number at all.
    """
    if value is None and optional:
        return
    none = ", or None" if optional else ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} is seconds, as a number{none}, not {value!r}")
    if not (value >= 0 and value > above and math.isfinite(value)):
        bound = "above 0" if above >= 0 else "from 0"
        raise ValueError(f"{what} is seconds {bound}{none}, not {value!r}")


def check_share(what: str, value: object) -> None:
    """Raise when a value is no number from 0 to 1.

    Args:
        what: Names it in the error.
        value: What was given.

    Raises:
        TypeError: It is no number.
        ValueError: It is out of bounds.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} is a number from 0 to 1, not {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"{what} is a number from 0 to 1, not {value!r}")


def check_count(what: str, value: object, least: int = 1) -> None:
    """Raise when a value is no whole number, or too small.

    Args:
        what: Names it in the error.
        value: What was given.
        least: The smallest that is allowed.

    Raises:
        TypeError: It is no whole number.
        ValueError: It is too small.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} is a whole number from {least}, not {value!r}")
    if value < least:
        raise ValueError(f"{what} is a whole number from {least}, not {value!r}")
