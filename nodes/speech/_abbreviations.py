"""Abbreviations behind whose full stop a sentence goes on, by language.

Those of all languages are used together, because an answer may mix languages.
"""

# ruff: noqa: RUF001 (this module handles quotation marks of other scripts)

from __future__ import annotations

import re
from functools import cache

from bargein.bridge.languages import language, tags

_DOTTED = re.compile(r"(?:[^\W\d_]\.)+")
"""Dotted abbreviations: initials, "e.g.", "p.m.", "U.S."."""
_ORDINAL = re.compile(r"\d{1,2}\.")
_LONGEST_SHORT_WORD = 4
"""The longest word that may be an abbreviation which is not listed here, in letters."""
_OPENERS = "\"'“‘«([{「『（【《¿¡*_"

NEXT_LETTERS = 3
"""How many characters behind a full stop decide whether the sentence goes on."""


def may_go_on(text: str) -> bool:
    """Return whether it depends on what follows if the sentence goes on behind its full stop.

    Args:
        text: The text up to the full stop.
    """
    word = _last_word(text)[:-1]
    is_short = len(word) <= _LONGEST_SHORT_WORD and not goes_on(text, "")
    return is_short and word.isalnum()


def goes_on(text: str, following: str) -> bool:
    """Return whether a sentence goes on behind its full stop.

    Args:
        text: The text up to the full stop.
        following: The next `NEXT_LETTERS` characters, without white space before them.
    """
    token = _last_word(text)
    word = token[:-1]
    if word in _words("abbreviations") or _DOTTED.fullmatch(token):
        return True
    if word in _words("abbreviations_before_numbers") and following[:1].isdigit():
        return True
    if len(word) <= _LONGEST_SHORT_WORD and word.isalnum() and following[:1].islower():
        return True
    if _ORDINAL.fullmatch(token) is None:
        return False
    before = text[: len(text) - len(token)].split()
    is_month = following[:NEXT_LETTERS].lower() in _words("short_months")
    return is_month or bool(before and before[-1].lower() in _words("before_ordinals"))


def _last_word(text: str) -> str:
    return text[max(text.rfind(" "), text.rfind("\n")) + 1 :].lstrip(_OPENERS).lower()


@cache
def _words(field: str) -> frozenset[str]:
    """Return the words that all languages have in a field."""
    return frozenset(word for tag in tags() for word in getattr(language(tag), field).split())
