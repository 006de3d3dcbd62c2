"""Reads fields of vendors' messages without trusting their types or values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from bargein.bridge.events import WordTiming


def probability(value: object) -> float | None:
    """Return a value as a probability, clamped to 0 and 1; ``None`` if it is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return min(max(float(value), 0.0), 1.0)


def lowest_probability(values: Iterable[object]) -> float | None:
    """Return the lowest of several probabilities; ``None`` if none of them is a number."""
    known = [known for value in values if (known := probability(value)) is not None]
    return min(known, default=None)


def timed_words(
    words: Iterable[Mapping[str, Any]], *names: str, per_s: int
) -> tuple[WordTiming, ...]:
    """Return the words that have times, in the order in which they come.

    Args:
        words: The vendor's objects, with ``start`` and ``end``.
        names: The fields that may hold the word itself; the first non-empty one counts.
        per_s: How many of the vendor's time units make a second.
    """
    found = []
    for word in words:
        start, end = word.get("start"), word.get("end")
        text = next((str(word[name]) for name in names if word.get(name)), "").strip()
        if text and isinstance(start, int | float) and isinstance(end, int | float):
            found.append(WordTiming(text, start / per_s, end / per_s))
    return tuple(found)


def in_time_order(words: Iterable[WordTiming], since_s: float = 0.0) -> tuple[WordTiming, ...]:
    """Make the times of words run forwards, by moving a time that runs back to the one before.

    Args:
        words: The words, in the order in which they are said.
        since_s: The earliest time at which the first may begin, in seconds.
    """
    found = []
    for word in words:
        start_s = word.start_s if math.isfinite(word.start_s) else since_s
        since_s = max(since_s, start_s)
        end_s = word.end_s if math.isfinite(word.end_s) else since_s
        found.append(WordTiming(word.text, since_s, max(since_s, end_s)))
    return tuple(found)
