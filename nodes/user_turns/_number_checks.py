"""Checks numbers from users, with an error that shows the value."""

from __future__ import annotations

import math


def check_seconds(what: str, value: object, *, optional: bool = False, above: float = -1.0) -> None:
    """Raise if a value is not a time in seconds.

    Args:
        what: Its name in the error.
        value: The value.
        optional: Whether ``None`` is allowed.
        above: The bound that it must exceed; by default 0 is allowed.

    Raises:
        TypeError: It is not a number.
        ValueError: It is negative, infinite or NaN.
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
    """Raise if a value is not a number from 0 to 1.

    Raises:
        TypeError: It is not a number.
        ValueError: It is out of bounds.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{what} is a number from 0 to 1, not {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"{what} is a number from 0 to 1, not {value!r}")


def check_count(what: str, value: object, least: int = 1) -> None:
    """Raise if a value is not an integer, or too small.

    Raises:
        TypeError: It is not an integer.
        ValueError: It is too small.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} is a whole number from {least}, not {value!r}")
    if value < least:
        raise ValueError(f"{what} is a whole number from {least}, not {value!r}")
