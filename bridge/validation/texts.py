"""Checks whether a text shows or says anything."""

from __future__ import annotations

import unicodedata

__all__ = ["has_words", "is_blank"]


def is_blank(text: str) -> bool:
    """Return whether a text says nothing: it has no letter, no digit and no symbol.

    What is left are white space, zero-width marks, which ``str.strip()`` keeps, and punctuation: a
    turn of "." or "..." is none. An emoji that somebody types says something.
    """
    return not any(char.isalnum() or unicodedata.category(char) in _SAYS for char in text)


_SAYS = ("So", "Sc", "Sm", "Mn", "Mc", "No", "Nl")
"""Symbols such as emoji, currencies and "+", and marks, with which some scripts write vowels."""


def has_words(text: str) -> bool:
    """Return whether a text has a letter or a digit: voices are silent about one without, such as
    a lone emoji.
    """
    return any(char.isalnum() for char in text)
