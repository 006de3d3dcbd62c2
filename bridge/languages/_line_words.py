"""Finds in words what whoever answers a telephone says, and the keys that they name."""

from __future__ import annotations

import re
from typing import Literal

from ._language import normalized
from ._line_phrases import LinePhrases

LineKind = Literal["voicemail", "menu", "screening", "waiting", "person"]
"""A kind of phrases: a field of `LinePhrases`."""

_KINDS: tuple[LineKind, ...] = ("voicemail", "menu", "screening", "waiting", "person")
_KEYS = "0123456789*#"
_FEW_WORDS = r"(?:\S+ ){0,4}?"


class LineWords:
    """Searches words for the phrases of one language.

    Attributes:
        key_words: Each word for a key, and the key.
    """

    def __init__(self, phrases: LinePhrases) -> None:
        """Prepare the search.

        Args:
            phrases: What to find.
        """
        words = {key: key for key in _KEYS if key.isdigit()}
        for key, named in zip(_KEYS, phrases.keys, strict=True):
            words.update(dict.fromkeys(normalized(named).split(), key))
        self.key_words = words
        keys = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
        self._patterns = {
            kind: _pattern(getattr(phrases, kind), rf"(?:{keys}) ") for kind in _KINDS
        }

    def place(self, kind: LineKind, said: str) -> int | None:
        """Return where the first phrase of a kind begins, in words; ``None`` if there is none.

        Args:
            kind: Which phrases.
            said: Normalised words, with single spaces.
        """
        found = self._patterns[kind].search(f" {said} ")
        return None if found is None else said[: max(0, found.start())].count(" ")


def _pattern(phrases: tuple[str, ...], key: str) -> re.Pattern[str]:
    """Return what finds any of some phrases in words with a space behind each."""
    marks = {"#": key, "~": _FEW_WORDS}
    alternatives = []
    for phrase in phrases:
        parts = (
            marks.get(part) or "".join(f"{re.escape(word)} " for word in normalized(part).split())
            for part in re.split("([#~])", phrase)
        )
        alternatives.append(f"(?<= )(?:{''.join(parts)})")
    return re.compile("|".join(alternatives) or "(?!)")
