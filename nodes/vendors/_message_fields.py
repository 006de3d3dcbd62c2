"""Fields of vendors' messages, of which nothing is certain."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from bargein.bridge.events import WordTiming


def query(**values: object) -> str:
    """Return the query of an address.

    Args:
        values: What is asked; None and empty tuples are left out, lists are repeated.
    """
    given = {name: value for name, value in values.items() if value is not None and value != ()}
    return urlencode(given, doseq=True)


def share(value: object) -> float | None:
    """Return a probability within 0 and 1; None for what is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
        return None
    return min(max(float(value), 0.0), 1.0)


def least(values: Iterable[object]) -> float | None:
    """Return the lowest probability; None if there is none."""
    known = [known for value in values if (known := share(value)) is not None]
    return min(known, default=None)


def timed_words(
    words: Iterable[Mapping[str, Any]], *names: str, per_s: int
) -> tuple[WordTiming, ...]:
    """Return the words that have times, in order.

    Args:
        words: Objects with ``start`` and ``end``.
        names: Where the word itself is; the first that is not empty counts.
        per_s: How many units of the vendor's make a second.
    """
    found = []
    for word in words:
        start, end = word.get("start"), word.get("end")
        text = next((str(word[name]) for name in names if word.get(name)), "").strip()
        if text and isinstance(start, int | float) and isinstance(end, int | float):
            found.append(WordTiming(text, start / per_s, end / per_s))
    return tuple(found)


def in_order(words: Iterable[WordTiming], since_s: float = 0.0) -> tuple[WordTiming, ...]:
    """Return words whose times run forwards: a time that does not is moved to the one before it.

    Args:
        words: In the order in which they are said.
        since_s: Before when none of them can begin.
    """
    found = []
    for word in words:
        start_s = word.start_s if math.isfinite(word.start_s) else since_s
        since_s = max(since_s, start_s)
        end_s = word.end_s if math.isfinite(word.end_s) else since_s
        found.append(WordTiming(word.text, since_s, max(since_s, end_s)))
    return tuple(found)
