"""Checks whether a text shows or says anything."""

from __future__ import annotations

import unicodedata

__all__ = ["has_words", "is_blank"]


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: it is empty, or only white space and zero-width marks.

    ``str.strip()`` keeps the latter: the zero-width space (U+200B), the word joiner and the byte
    order mark.
    """
    rest = text.strip()
    return not rest or (
        not rest.isascii()
        and all(char.isspace() or unicodedata.category(char) == "Cf" for char in rest)
    )


def has_words(text: str) -> bool:
    """Return whether a text has a letter or a digit: voices are silent about one without, such as
    a lone emoji.
    """
    return any(char.isalnum() for char in text)
