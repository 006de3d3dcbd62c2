"""Where a text may be cut: between two characters that people see as two."""

from __future__ import annotations

import unicodedata

_VIRAMAS = frozenset("\u094d\u09cd\u0a4d\u0acd\u0b4d\u0c4d\u0ccd\u0d4d\u1039\u17d2")
"""Signs that join the next consonant to the one before: of scripts of India, Burmese and Khmer."""


def is_boundary(text: str, at: int) -> bool:
    """Return whether a user-perceived character ends at an offset (Unicode's annex 29, in short).

    Args:
        text: The text.
        at: The offset, 1 to ``len(text) - 1``.
    """
    before, here = text[at - 1], text[at]
    if unicodedata.category(here) in ("Mn", "Mc", "Me", "Cf") or before == "\u200d":
        return False
    if here in "\u0e33\u0eb3" or "\U0001f3fb" <= here <= "\U0001f3ff" or before in _VIRAMAS:
        return False  # Thai and Lao vowels AM, skin tones, joined consonants
    if "\u1160" <= here <= "\u11ff" or before + here == "\r\n":
        return False  # letters of a Korean syllable
    if _is_flag_half(here) and _is_flag_half(before):
        start = at
        while start and _is_flag_half(text[start - 1]):
            start -= 1
        return (at - start) % 2 == 0
    return True


def boundary_before(text: str, at: int) -> int:
    """Return the last offset from 1 to `at` where a text may be cut; `at` if there is none.

    In Thai and Lao this is the beginning of a syllable if one is near, in Tibetan its end.

    Args:
        text: The text, longer than `at`.
        at: Where it is cut at the latest.
    """
    for cut in range(at, max(0, at - _NEAR), -1):
        if text[cut] in _LEADING_VOWELS or text[cut - 1] in "\u0f0b\u0f0d":
            return cut
    return next((cut for cut in range(at, 0, -1) if is_boundary(text, cut)), at)


_NEAR = 12
_LEADING_VOWELS = "\u0e40\u0e41\u0e42\u0e43\u0e44\u0ec0\u0ec1\u0ec2\u0ec3\u0ec4"
"""Vowels that are written before the consonant behind which they are spoken: a syllable begins."""


def _is_flag_half(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"
