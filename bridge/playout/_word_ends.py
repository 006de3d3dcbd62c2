"""Finds where words end and, in scripts without spaces, user-perceived characters."""

from __future__ import annotations

import re
import unicodedata

# Patterns are strings, which `re` compiles on first use: that takes 8 ms, too long for an import.
# Han, kana, Thai, Lao, Khmer and Myanmar write without spaces between words.
NO_SPACES = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003347f]"
)

_EXTENDS = "[\u0e33\u0eb3\U0001f3fb-\U0001f3ff]"
"""Characters that belong to the previous one, besides marks: Thai and Lao vowels AM, and skin tones
(both extend a grapheme according to Unicode's annex 29)."""

_FLAG_HALF = "[\U0001f1e6-\U0001f1ff]"


def word_ends(text: str) -> list[int]:
    """Return the offsets in ``text`` at which words end, in rising order."""
    if text.isascii():
        return [match.end() for match in re.finditer(r"\S+", text)]
    ends: list[int] = []
    for match in re.finditer(r"\S+", text):
        if re.search(NO_SPACES, match.group()):
            ends.extend(character_ends(text, match.start(), match.end()))
        else:
            ends.append(match.end())
    return ends


def character_ends(text: str, start: int, end: int) -> list[int]:
    """Return the offsets at which the user-perceived characters of a part of a text end."""
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
    if before.isalnum() and here.isalnum() and not re.match(NO_SPACES, before):
        return re.match(NO_SPACES, here) is None  # a word or number of another script in between
    return re.match(_EXTENDS, here) is not None
