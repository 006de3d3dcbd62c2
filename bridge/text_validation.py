"""Checks whether a text shows anything."""

from __future__ import annotations

import unicodedata


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: it is empty, or only white space and zero-width marks.

    ``str.strip()`` keeps the latter: the zero-width space (U+200B), the word joiner and the byte
    order mark.

    Args:
        text: Any text.
    """
    rest = text.strip()
    return not rest or (
        not rest.isascii()
        and all(char.isspace() or unicodedata.category(char) == "Cf" for char in rest)
    )
