"""Where the last word that was heard begins: there speech goes on that could not stand still."""

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
    """Return where in the audio of a text its word begins that ends at an offset.

    Args:
        text: What the audio says.
        words: Where its words lie in the audio; empty if that is not known.
        end: The offset in `text` at which the word ends; above 0.
        duration_s: Seconds of the whole audio, or of what is there of it so far.
        ends: What ``word_ends(text)`` gives, if that is known; ``None`` has it looked for.
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
            continue  # the engine wrote this word otherwise; the ones around it still tell
        if found > begin:
            break
        offset = found + len(word.text)
        # Where what the engine calls a word is a whole clause, it begins somewhere within.
        share = (begin - found) / len(word.text) if begin < offset else 1.0
        start_s = word.start_s + share * (word.end_s - word.start_s)
    return start_s
