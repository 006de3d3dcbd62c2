"""What all measurements share: the engines and recordings, and statistics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ._measurement_table import MeasurementRow
from ._recordings import RecordingFolder
from ._replay_engines import Engines
from ._sound_levels import WINDOW, SoundSurroundings


@dataclass(frozen=True)
class MeasurementSetup:
    """The engines, recordings and surroundings that every measurement needs."""

    engines: Engines
    folder: RecordingFolder
    surroundings: SoundSurroundings
    note: Callable[[dict[str, Any]], None]
    """Called with the facts of each replay."""


Measure: TypeAlias = Callable[[MeasurementSetup], list[MeasurementRow]]


def place(number: int, of: int = 1, which: int = 0) -> int:
    """Return by how many samples to move a sound on the detector's windows, 0 to 511.

    Over a sample of recordings, all places come up equally often.

    Args:
        number: The recording's number in its sample.
        of: At how many places each recording is played.
        which: The number of the place among these.
    """
    return (number * 197 + which * WINDOW // of) % WINDOW  # 197 and 512 have no common factor


def percent(count: int, of: int) -> float | None:
    """Return a share in percent; ``None`` if there are none to count."""
    return round(100 * count / of, 1) if of else None


def quantiles(values: Iterable[float | None]) -> str:
    """Return the median and the 95th percentile as text, in seconds, without ``None`` values."""
    import numpy as np

    known = [value for value in values if value is not None]
    if not known:
        return "-"
    return f"p50 {np.percentile(known, 50):.2f}, p95 {np.percentile(known, 95):.2f} s"


def at(share: float, values: Iterable[float | None]) -> float | None:
    """Return a percentile of times in milliseconds; ``None`` if there are no values."""
    import numpy as np

    known = [value for value in values if value is not None]
    return round(1000 * float(np.percentile(known, share))) if known else None


DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
NUMBERS: dict[str, str] = {str(number): word for number, word in enumerate(DIGITS)}
NUMBERS |= {"10": "ten", "12": "twelve", "16": "sixteen", "20": "twenty"}


_WORD: re.Pattern[str] = re.compile(r"[a-z0-9']+")


def words_of(text: str) -> list[str]:
    """Return the words of a text in lower case, with numbers written as they are said."""
    words = [match.group() for match in _WORD.finditer(text.lower())]
    return [NUMBERS.get(word, word) for word in words]
