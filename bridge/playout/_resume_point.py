"""Finds the start of the last heard word, where speech resumes on a player that was cleared."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from ..events import WordTiming
from ._word_timing import word_ends


def last_word_start_s(
    text: str,
    words: Sequence[WordTiming],
    end: int,
    duration_s: float,
    ends: Sequence[int] | None = None,
) -> float:
    """Return where in the audio the word that ends at an offset of the text starts, in seconds.

    Args:
        text: What the audio says.
        words: The timing of its words; empty if unknown.
        end: The offset in ``text`` at which the word ends; above 0.
        duration_s: Seconds of the whole audio, or of the audio so far.
        ends: The result of ``word_ends(text)``; ``None`` computes it.
    """
    ends = word_ends(text) if ends is None else ends
    earlier = bisect_left(ends, end)
    before = ends[earlier - 1] if earlier else 0
    begin = end - len(text[before:end].lstrip())
    timed = _timed_start_s(text, words, begin)
    return duration_s * begin / len(text) if timed is None else timed


def _timed_start_s(text: str, words: Sequence[WordTiming], begin: int) -> float | None:
    offset, start_s = 0, None
    for word in words:
        found = text.find(word.text, offset)
        if found < 0:
            continue  # the engine spells this word differently; use the ones around it
        if found > begin:
            break
        offset = found + len(word.text)
        # If an engine's "word" is a whole clause, the word starts somewhere inside it.
        share = (begin - found) / len(word.text) if begin < offset else 1.0
        start_s = word.start_s + share * (word.end_s - word.start_s)
    return start_s
