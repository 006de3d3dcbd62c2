"""Finds the start of the last heard word, where speech resumes on a player that was cleared."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ..events import WordTiming
from ._word_ends import word_ends
from ._word_timing import WordTimes


def last_word_start_s(
    text: str,
    words: Sequence[WordTiming] | WordTimes,
    end: int,
    duration_s: float,
    ends: Sequence[int] | None = None,
) -> float:
    """Return where in the audio the word that ends at an offset of the text starts, in seconds.

    Args:
        text: What the audio says.
        words: The timing of its words, aligned or not; empty if unknown.
        end: The offset in ``text`` at which the word ends; above 0.
        duration_s: Seconds of the whole audio, or of the audio so far.
        ends: The result of ``word_ends(text)``; ``None`` computes it.
    """
    ends = word_ends(text) if ends is None else ends
    earlier = bisect_left(ends, end)
    before = ends[earlier - 1] if earlier else 0
    begin = end - len(text[before:end].lstrip())
    if words and not isinstance(words, WordTimes):
        words = WordTimes(text, words, duration_s, complete=True)
    timed = words.start_s(end) if isinstance(words, WordTimes) else None
    return duration_s * begin / len(text) if timed is None else timed
