"""Splits streamed text into pieces that can be spoken on their own.

Rule 1: the joined pieces are the text; no character is lost or changed.
Rule 2: the pieces do not depend on how the text arrives.
Rule 3: a split needs the next character: "3." may continue as "3.50".
Rule 4: a piece contains a word, except the last one, which may be white space, and except a long
    row of characters that belong to no word.
"""

# ruff: noqa: RUF001 (this module handles the marks of other scripts)

from __future__ import annotations

import re
from collections.abc import AsyncIterator

from bargein.bridge.validation.numbers import check_count

_SENTENCE_MARKS = frozenset(".!?。！？｡؟۔।॥…")
_CLAUSE_MARKS = frozenset(",;:，、；：،؛—–")
_WIDE_MARKS = frozenset("。！？｡，、；：")
"""Marks that end a piece without a space after them, because their scripts have none."""
_CLOSERS = frozenset("\"'”’»)]}」』）】》")
_OPENERS = "\"'“‘«([{「『（【《¿¡*_"

_ABBREVIATION = re.compile(
    r"(?:dr|mr|mrs|ms|mx|prof|st|mt|ft|jr|sr|vs|etc|approx|dept|est|inc|ltd|co|corp|ave|blvd|rd"
    r"|tel|ext|cf|al|jan|feb|apr|aug|sept|oct|nov|dec)\."
)
"""Abbreviations in lower case, without "no.", which is an answer in a conversation."""
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+")
"""Dotted abbreviations: initials, "e.g.", "p.m.", "U.S."."""
_LIST_NUMBER = re.compile(r"\s*\d{1,3}\.")

_NO_SPACES = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f"
_WORD = re.compile(rf"[{_NO_SPACES}]|[^\W_{_NO_SPACES}]+(?:['’.,:][^\W_{_NO_SPACES}]+)*")
"""A word; in Chinese, Japanese and Thai each character counts as one."""


class ClauseSplitter:
    """Splits streamed text into pieces that can be spoken on their own."""

    def __init__(
        self,
        *,
        first_words: int = 2,
        first_waits_words: int = 6,
        clause_words: int = 8,
        max_characters: int = 240,
    ) -> None:
        """Start a text.

        Args:
            first_words: The least number of words in the first piece, which may end at a comma, so
                that the agent is heard sooner. Later sentences are joined until they have as many.
            first_waits_words: If the first sentence has not ended after this many words, the first
                piece is its beginning, such as "Sure,": the agent says that during the half second
                in which a language model writes the rest.
            clause_words: Later pieces end at a comma or similar mark only if they have this many
                words; otherwise they are whole sentences.
            max_characters: A longer piece without punctuation is cut at a space, or anywhere if it
                has none.

        Raises:
            TypeError: A number is not an integer.
            ValueError: A number is less than 1.
        """
        check_count("ClauseSplitter(first_words=)", first_words)
        check_count("ClauseSplitter(first_waits_words=)", first_waits_words)
        check_count("ClauseSplitter(clause_words=)", clause_words)
        check_count("ClauseSplitter(max_characters=)", max_characters)
        self._first_words = first_words
        self._first_waits_words = first_waits_words
        self._clause_words = clause_words
        self._max_characters = max_characters
        self._text = ""
        self._seen = 0
        self._first = True
        self._short_cut: int | None = None

    def feed(self, text: str) -> list[str]:
        """Return the pieces that this text completes.

        Args:
            text: The next characters.
        """
        self._text += text
        pieces = []
        while (end := self._next_cut()) is not None:
            pieces.append(self._text[:end])
            self._text = self._text[end:]
            self._seen = 0
            self._first = False
            self._short_cut = None
        return pieces

    def flush(self) -> list[str]:
        """Return the last piece, if anything is left, and start a new text."""
        rest, self._text, self._seen, self._first = self._text, "", 0, True
        self._short_cut = None
        return [rest] if rest else []

    def cut_words(self) -> str:
        """Return the complete words of an incomplete clause; empty if there are none.

        For text that arrives so slowly that the caller is waiting.
        """
        end = len(self._text.rstrip()) and self._text.rfind(" ") + 1
        words, self._text = self._text[:end], self._text[end:]
        if not words.strip():
            self._text = words + self._text
            return ""
        self._seen, self._first, self._short_cut = 0, False, None
        return words

    def _next_cut(self) -> int | None:
        """Return where the next piece ends; None if that is not known yet."""
        while self._seen < len(self._text):
            at = self._seen
            self._seen += 1
            needed = self._words_needed(at)
            cut = at + self._text[at].isspace()  # the space belongs to the piece before it
            if needed and _has_words(self._text[:at], needed):
                return cut
            if self._first and self._text[at].isspace():
                if self._short_cut is None and needed and _has_words(self._text[:at], 1):
                    self._short_cut = cut
                elif self._short_cut and _has_words(self._text[:at], self._first_waits_words):
                    return self._short_cut
            if at >= self._max_characters:
                return self._forced_cut()
        return None

    def _words_needed(self, at: int) -> int:
        """Return how many words a piece needs to end before this character; 0 for never."""
        text, character = self._text, self._text[at]
        if character == "\n":
            return 1
        end = at
        while end and text[end - 1] in _CLOSERS:
            end -= 1
        mark = text[end - 1 : end]
        if character in _CLOSERS or not (character.isspace() or (mark and mark in _WIDE_MARKS)):
            return 0
        if mark and mark in _CLAUSE_MARKS:
            return self._first_words if self._first else self._clause_words
        ends = mark in _SENTENCE_MARKS and character not in _SENTENCE_MARKS
        return self._first_words if mark and ends and not _continues(text[:end]) else 0

    def _forced_cut(self) -> int:
        """Return where to cut a piece that has grown too long."""
        limit = self._max_characters
        space = max(self._text.rfind(mark, 1, limit) for mark in " \t\u3000")
        return space + 1 if space > 0 and _has_words(self._text[:space], 1) else limit


def _continues(text: str) -> bool:
    """Return whether the sentence continues after the mark at the end of this text."""
    if text.endswith(("..", "…")):
        return True  # a pause inside a sentence
    if not text.endswith("."):
        return False
    token = text[max(text.rfind(" "), text.rfind("\n")) + 1 :].lstrip(_OPENERS).lower()
    return (
        _ABBREVIATION.fullmatch(token) is not None
        or _DOTTED.fullmatch(token) is not None
        or _LIST_NUMBER.fullmatch(text) is not None
    )


def _has_words(text: str, count: int) -> bool:
    return sum(1 for _ in _WORD.finditer(text)) >= count


async def clauses(texts: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield streamed text in pieces that can be spoken on their own; see ``ClauseSplitter``.

    The first piece comes early.  Cancelling is safe and drops incomplete text.

    Args:
        texts: The text as it is generated.
    """
    splitter = ClauseSplitter()
    async for text in texts:
        for piece in splitter.feed(text):
            yield piece
    for piece in splitter.flush():
        yield piece
