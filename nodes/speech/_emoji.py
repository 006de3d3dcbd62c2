"""The characters that show something and say nothing: emoji, their parts, and invisible ones."""

from __future__ import annotations

import re

EMOJI = re.compile(
    "(?:[\U0001f000-\U0001faff\u2600-\u27bf\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u24c2\u25aa\u25ab"
    "\u25b6\u25c0\u25fb-\u25fe\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d\u3297"
    "\u3299\u2122\u00ae\u2194-\u2199\u21a9\u21aa](?:[\ufe0e\ufe0f\u20e3\u200d\U0001f3fb-\U0001f3ff]"
    "|[\U000e0020-\U000e007f])*)+"
)
"""A row of emoji: those of Unicode's ``emoji-data.txt`` with ``Extended_Pictographic`` or
``Emoji_Presentation``, apart from digits, "#", "*" and "©", and what modifies them."""

SILENT_CHARACTERS = frozenset(
    "\ufe0e\ufe0f\u20e3\u00ad\u200b\u2060\ufeff\ufffc\ufffd"
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
) | {chr(code) for code in range(0xE0000, 0xE0080)}
"""Variation selectors, keycaps, hyphens that show only at a line's end, zero-width blanks, marks of
the direction of writing, replacements of what could not be read, and tags. Joiners are kept, with
which scripts of India and Persia are spelled."""
