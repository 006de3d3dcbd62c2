"""What all measurements share: where they play, and how they count."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ._engines import Engines
from ._recordings import Folder
from ._sound import WINDOW, Surroundings
from ._table import Row


@dataclass(frozen=True)
class Ground:
    """What every measurement needs."""

    engines: Engines
    folder: Folder
    surroundings: Surroundings
    note: Callable[[dict[str, Any]], None]
    """Is given the facts of each replay."""


Measure: TypeAlias = Callable[[Ground], list[Row]]


def place(number: int, of: int = 1, which: int = 0) -> int:
    """Return where on the detector's windows a sound lies: all places are used, evenly.

    Args:
        number: Of the recording in its sample.
        of: At how many places it is put.
        which: Which of them.
    """
    return (number * 197 + which * WINDOW // of) % WINDOW  # 197 and 512 have no common factor


def percent(count: int, of: int) -> float | None:
    """Return a share; None of nothing."""
    return round(100 * count / of, 1) if of else None


def quantiles(values: Iterable[float | None]) -> str:
    """Return median and 95th percentile in seconds, as text."""
    import numpy as np

    known = [value for value in values if value is not None]
    if not known:
        return "-"
    return f"p50 {np.percentile(known, 50):.2f}, p95 {np.percentile(known, 95):.2f} s"


def at(share: float, values: Iterable[float | None]) -> float | None:
    """Return a percentile in ms; None of nothing."""
    import numpy as np

    known = [value for value in values if value is not None]
    return round(1000 * float(np.percentile(known, share))) if known else None


DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NUMBERS: dict[str, str] = {str(number): word for number, word in enumerate(DIGITS)}
NUMBERS |= {"10": "ten", "12": "twelve", "16": "sixteen", "20": "twenty"}


_WORD: re.Pattern[str] = re.compile(r"[a-z0-9']+")


def words_of(text: str) -> list[str]:
    """Return words in lower case, numbers as they are said."""
    words = [match.group() for match in _WORD.finditer(text.lower())]
    return [NUMBERS.get(word, word) for word in words]
