"""Whether a text says anything."""

from __future__ import annotations

import unicodedata


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: it is empty, or all white space and marks without width.

    Such are the zero-width space (U+200B), the word joiner and the byte order mark, which
    ``str.strip()`` leaves.

    Args:
        text: Any text.
    """
    rest = text.strip()
    return not rest or (
        not rest.isascii()
        and all(char.isspace() or unicodedata.category(char) == "Cf" for char in rest)
    )
