"""Finds out whether words are an acknowledgement alone, ask for silence, or just are words.

Rules:
1. Text is compared without letter case, accents and punctuation, as whole words.
2. A script that is written without spaces has no words to compare: there a phrase counts wherever
   its characters stand.
3. Text is acknowledgement alone if acknowledgements cover all of it, in any order and number.
4. A sentence is unfinished if it ends with a phrase with which none ends, or as recognisers write
   what breaks off: with an ellipsis, a dash or a comma.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from ._packs import LanguagePack

_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Thai, Lao, Burmese, Khmer, kana and Han (Unicode blocks): written without spaces."""

_MARKS_KEPT = "\u3099\u309a"
"""The voicing marks of kana are no accents: without them these are other sounds."""

_BREAKS_OFF = ("...", "\u2026", "-", "\u2013", "\u2014", ",", "\u3001", "\uff0c")
"""How a transcript ends of a sentence that breaks off: three points, dashes, commas."""


def normalized(text: str) -> str:
    """Return text in lower case, without accents and punctuation, with single spaces.

    Characters of scripts without spaces stand apart, so that each counts as a word.

    Args:
        text: Any text.
    """
    # An apostrophe joins what it stands in: "that's" is one word.
    text = text.replace("'", "").replace("\N{RIGHT SINGLE QUOTATION MARK}", "")
    parts = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(c for c in parts if c in _MARKS_KEPT or not unicodedata.combining(c))
    kept = unicodedata.normalize("NFC", kept)
    spaced = _UNSPACED.sub(r" \g<0> ", kept)
    return " ".join("".join(c if _is_letter(c) else " " for c in spaced).split())


def _is_letter(char: str) -> bool:
    # The vowel signs of Thai and its neighbours are marks, and so is the long vowel of kana.
    return char.isalnum() or unicodedata.category(char) in ("Mc", "Mn", "Lm")


def words_of(text: str) -> list[str]:
    """Return the words of a text, normalised; a character each where there are no spaces.

    Args:
        text: Any text.
    """
    return normalized(text).split()


class Phrases:
    """What counts as an acknowledgement, as an interruption, and as an unfinished sentence."""

    def __init__(
        self,
        acknowledgements: Iterable[str],
        interruptions: Iterable[str],
        unfinished: Iterable[str] = (),
        unfinished_statements: Iterable[str] = (),
        question_words: Iterable[str] = (),
    ) -> None:
        """Take the phrases.

        Args:
            acknowledgements: Words that never interrupt.
            interruptions: Words that always do.
            unfinished: Words with which no sentence ends.
            unfinished_statements: Words with which none ends that has no question word.
            question_words: The question words.
        """
        self._acknowledgements = _by_length(acknowledgements)
        self._interruptions = _by_length(interruptions)
        self._unfinished = _by_length(unfinished)
        self._unfinished_statements = _by_length(unfinished_statements)
        self._question_words = _by_length(question_words)

    @classmethod
    def of(
        cls,
        packs: Iterable[LanguagePack],
        acknowledgements: Iterable[str] = (),
        interruptions: Iterable[str] = (),
        unfinished: Iterable[str] = (),
    ) -> Phrases:
        """Return the phrases of packs, and further ones.

        Args:
            packs: Language packs.
            acknowledgements: Further acknowledgements.
            interruptions: Further interruption phrases.
            unfinished: Further words with which no sentence ends.
        """
        packs = tuple(packs)
        return cls(
            [*acknowledgements, *(p for pack in packs for p in pack.acknowledgements)],
            [*interruptions, *(p for pack in packs for p in pack.interruptions)],
            [*unfinished, *(p for pack in packs for p in pack.unfinished)],
            [p for pack in packs for p in pack.unfinished_statements],
            [p for pack in packs for p in pack.question_words],
        )

    def is_acknowledgement(self, text: str) -> bool:
        """Whether acknowledgements are all that a text says; no words are none.

        Args:
            text: What was heard.
        """
        words = words_of(text)
        return bool(words) and self._covered(words)[-1]

    def may_become_acknowledgement(self, text: str) -> bool:
        """Whether a text that goes on may turn out an acknowledgement alone ("I" of "I see").

        Args:
            text: What was heard so far.
        """
        words = words_of(text)
        return any(
            phrase[: len(words) - at] == tuple(words[at:])
            for at, is_covered in enumerate(self._covered(words))
            if is_covered
            for phrase in self._acknowledgements
        )

    def _covered(self, words: list[str]) -> list[bool]:
        """Return for each n whether whole acknowledgements cover the first n words."""
        covered = [True] + [False] * len(words)
        for end in range(1, len(words) + 1):
            covered[end] = any(
                covered[end - len(phrase)] and tuple(words[end - len(phrase) : end]) == phrase
                for phrase in self._acknowledgements
                if len(phrase) <= end
            )
        return covered

    def asks_to_stop(self, text: str) -> bool:
        """Whether an interruption phrase stands anywhere in a text.

        Args:
            text: What was heard.
        """
        return _has(words_of(text), self._interruptions)

    def is_unfinished(self, text: str) -> bool:
        """Whether a text ends where no sentence does, so that more is to come.

        Args:
            text: What was heard so far.
        """
        words = words_of(text)
        if not words:
            return False
        if text.rstrip().endswith(_BREAKS_OFF) or _ends_with(words, self._unfinished):
            return True
        return _ends_with(words, self._unfinished_statements) and not _has(
            words, self._question_words
        )


def _has(words: list[str], phrases: Iterable[tuple[str, ...]]) -> bool:
    return any(
        tuple(words[at : at + len(phrase)]) == phrase
        for at in range(len(words))
        for phrase in phrases
    )


def _ends_with(words: list[str], phrases: Iterable[tuple[str, ...]]) -> bool:
    return any(tuple(words[-len(phrase) :]) == phrase for phrase in phrases)


def _by_length(phrases: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    found = {tuple(words_of(phrase)) for phrase in phrases}
    return tuple(sorted(found - {()}, key=lambda phrase: (-len(phrase), phrase)))
