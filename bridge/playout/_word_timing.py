"""Computes how much of a text was heard: whole words, and never more than was played.

A word counts once its last sound was played.  In scripts without spaces (Chinese, Japanese, Thai)
each user-perceived character is a word.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence

from ..events import WordTiming

# Patterns are strings, which `re` compiles on first use: that takes 8 ms, too long for an import.
# Han, kana, Thai, Lao, Khmer and Myanmar write without spaces between words.
_NO_SPACES = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003347f]"
)

_EXTENDS = "[\u0e33\u0eb3\U0001f3fb-\U0001f3ff]"
"""Characters that belong to the previous one, besides marks: Thai and Lao vowels AM, and skin tones
(both extend a grapheme according to Unicode's annex 29)."""

_FLAG_HALF = "[\U0001f1e6-\U0001f1ff]"

_SLACK_S = 0.02
"""One audio frame, in seconds: players round their positions to it."""


def word_ends(text: str) -> list[int]:
    """Return the offsets in ``text`` at which words end, in rising order."""
    ends: list[int] = []
    for match in re.finditer(r"\S+", text):
        if re.search(_NO_SPACES, match.group()):
            ends.extend(_character_ends(text, match.start(), match.end()))
        else:
            ends.append(match.end())
    return ends


def said_end(said: str, text: str, begin: int) -> int | None:
    """Return the offset in ``text`` at which a piece of it ends that starts at ``begin``.

    Args:
        said: The piece in the words of a voice; its spaces may differ from those of ``text``.
        text: The whole text.
        begin: Where the piece starts; spaces there are part of it.

    Returns:
        ``None`` if ``text`` does not continue with the piece there.
    """
    at = begin
    for character in "".join(said.split()):
        while text[at : at + 1].isspace():
            at += 1
        if text[at : at + 1] != character:
            return None
        at += 1
    while said[-1:].isspace() and text[at : at + 1].isspace():
        at += 1
    return at


def _character_ends(text: str, start: int, end: int) -> list[int]:
    offsets = range(start + 1, end)
    return [offset for offset in offsets if not _is_joined(text, start, offset)] + [end]


def _is_joined(text: str, start: int, offset: int) -> bool:
    """Whether the character at an offset belongs to the one before it."""
    before, here = text[offset - 1], text[offset]
    if unicodedata.category(here) in ("Mn", "Mc", "Me", "Cf", "Po", "Pe") or before == "\u200d":
        return True
    if re.match(_FLAG_HALF, here):
        halves = re.search(f"{_FLAG_HALF}*$", text[start:offset])
        return halves is not None and len(halves.group()) % 2 == 1
    if before.isalnum() and here.isalnum() and not re.match(_NO_SPACES, before):
        return re.match(_NO_SPACES, here) is None  # a word or number of another script in between
    return re.match(_EXTENDS, here) is not None


def heard_length(
    text: str,
    words: Sequence[WordTiming],
    played_s: float,
    duration_s: float,
    ends: Sequence[int] | None = None,
) -> int:
    """Return how many characters of a text were heard.

    Args:
        text: What the audio says.
        words: The timing of its words; empty if unknown.
        played_s: Seconds of the audio that were played.
        duration_s: Seconds of the whole audio, or of the audio so far.
        ends: The result of ``word_ends(text)``; ``None`` computes it.

    Returns:
        0 to ``len(text)``, at the end of a word; all of the text if all the audio was played.
    """
    if duration_s <= 0 or played_s <= 0:
        return 0
    if played_s >= duration_s:
        return len(text)
    if words:
        return _by_timings(text, words, played_s)
    return _by_share(text, played_s / duration_s, ends)


def _by_share(text: str, share: float, ends: Sequence[int] | None = None) -> int:
    ends = word_ends(text) if ends is None else ends
    before = bisect_right(ends, len(text) * share + 1e-6)
    return ends[before - 1] if before else 0


def _by_timings(text: str, words: Sequence[WordTiming], played_s: float) -> int:
    heard = offset = 0
    for word in words:
        found = text.find(word.text, offset)
        if found < 0:
            continue  # the engine spells this word differently; use the next ones
        offset = found + len(word.text)
        if word.end_s <= played_s + _SLACK_S:
            heard = offset
        elif word.start_s < played_s and re.search(_NO_SPACES, word.text):
            # Here an engine's "word" is a whole clause.
            share = (played_s - word.start_s) / (word.end_s - word.start_s)
            heard = found + _by_share(word.text, share)
    return heard


def quiet_until_s(words: Sequence[WordTiming], played_s: float, duration_s: float) -> float:
    """Return a position in the audio before which no further word of a text is heard.

    Args:
        words: The timing of its words.
        played_s: Seconds of the audio that were played.
        duration_s: Seconds of the audio.

    Returns:
        At most the end of the next word, in seconds; 0 if a word counts before its end, as a
        clause of a script without spaces does.
    """
    until_s = duration_s
    for word in words:
        if word.end_s > played_s + _SLACK_S:
            if re.search(_NO_SPACES, word.text):
                return 0.0
            until_s = min(until_s, word.end_s)
    return until_s - _SLACK_S
