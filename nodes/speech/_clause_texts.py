"""Cuts an utterance into clauses by what is said, and keeps what is written for each.

Rules:
1. The written texts of the clauses, joined, are the utterance's text.
2. A mark that is not said belongs to the clause of the word behind it, at the end to the last one.
3. The times of a voice's words are given to the written words, so that heard text is found there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from bargein.bridge.events import WordTiming

from ._clauses import ClauseSplitter
from ._markup import SpokenPart
from ._spoken_form import SpokenForm


@dataclass(frozen=True, slots=True)
class ClauseText:
    """A clause: what is written, and what is said for it."""

    parts: tuple[SpokenPart, ...] = ()

    @property
    def written(self) -> str:
        """Its part of the utterance's text."""
        return "".join(part.written for part in self.parts)

    @property
    def spoken(self) -> str:
        """What the voice says."""
        return "".join(part.spoken for part in self.parts)


NOTHING_SAID = ClauseText()


class ClauseTexts:
    """The clauses of one utterance, as its text comes."""

    def __init__(self, form: SpokenForm, splitter: ClauseSplitter) -> None:
        """Start an utterance.

        Args:
            form: Its spoken form.
            splitter: Cuts what is said.
        """
        self._form = form
        self._splitter = splitter
        self._parts: deque[SpokenPart] = deque()

    def feed(self, text: str) -> list[ClauseText]:
        return self._add(self._form.feed(text))

    def flush(self) -> list[ClauseText]:
        """Return the last clauses, with all that is left of the text."""
        clauses = self._add(self._form.flush())
        clauses += [self._pop(len(piece)) for piece in self._splitter.flush()]
        if self._parts:
            rest = tuple(self._parts)
            self._parts.clear()
            last = clauses.pop() if clauses else ClauseText()
            clauses.append(ClauseText(last.parts + rest))
        return clauses

    def cut_words(self) -> ClauseText | None:
        """Return the complete words of an incomplete clause; ``None`` if there are none."""
        words = self._splitter.cut_words()
        return self._pop(len(words)) if words else None

    def _add(self, parts: Iterable[SpokenPart]) -> list[ClauseText]:
        clauses = []
        for part in parts:
            self._parts.append(part)
            pieces = self._splitter.feed(part.spoken) if part.spoken else ()
            clauses += [self._pop(len(piece)) for piece in pieces]
        return clauses

    def _pop(self, size: int) -> ClauseText:
        """Take the parts of the next characters said."""
        taken: list[SpokenPart] = []
        while size > 0:
            part = self._parts.popleft()
            if len(part.spoken) > size:
                first, rest = _split(part, size)
                self._parts.appendleft(rest)
                part = first
            size -= len(part.spoken)
            taken.append(part)
        return ClauseText(tuple(taken))


def whole_text(text: str, form: SpokenForm) -> ClauseText:
    """Return a whole text as one clause.

    Args:
        text: The text.
        form: Its spoken form.
    """
    return ClauseText((*form.feed(text), *form.flush()))


def _split(part: SpokenPart, size: int) -> tuple[SpokenPart, SpokenPart]:
    """Split a part; if its letters do not stand for themselves, it is heard with its end."""
    if part.written == part.spoken:
        first, rest = part.spoken[:size], part.spoken[size:]
        return SpokenPart(first, first), SpokenPart(rest, rest)
    return SpokenPart("", part.spoken[:size]), replace(part, spoken=part.spoken[size:])


class WrittenWords:
    """Gives the times of a clause's spoken words to its written ones, in order."""

    def __init__(self, clause: ClauseText) -> None:
        """Start with the first word.

        Args:
            clause: The clause.
        """
        self._spoken = clause.spoken
        self._is_same = all(part.written == part.spoken for part in clause.parts)
        self._parts = clause.parts
        self._at = 0  # how much of what is said has times
        self._word_start_s: float | None = None  # when a written word began that several words say

    def times(self, words: Sequence[WordTiming]) -> tuple[WordTiming, ...]:
        """Return the times of the written words.

        Args:
            words: The words of a piece of audio, in the words of the voice; one that is spelled in
                another way is returned as it is.
        """
        if self._is_same:
            return tuple(words)
        if self._word_start_s is not None:
            self._word_start_s = 0.0  # it began in the piece before
        timed = [self._time(word) for word in words]
        return tuple(word for word in timed if word is not None)

    def _time(self, word: WordTiming) -> WordTiming | None:
        text = word.text.strip()
        begin = self._spoken.find(text, self._at)
        if not text or begin < 0:
            return word
        end = self._at = begin + len(text)
        written, is_complete = self._written(begin, end)
        word_start_s, self._word_start_s = self._word_start_s, None
        start_s = word.start_s if word_start_s is None else min(word_start_s, word.start_s)
        if not is_complete:
            self._word_start_s = start_s
            return None
        return WordTiming(written, start_s, word.end_s) if written else None

    def _written(self, begin: int, end: int) -> tuple[str, bool]:
        """Return what is written for a part of what is said, and whether that is all of it."""
        written, at, is_complete = "", 0, True
        for part in self._parts:
            first, last = max(begin, at), min(end, at + len(part.spoken))
            inside = first < last or (not part.spoken and begin < at < end)
            if inside and part.written == part.spoken:
                written += part.spoken[first - at : last - at]
            elif inside:
                written += part.written
                left = part.spoken[last - at :]
                is_complete = not any(character.isalnum() for character in left)
            at += len(part.spoken)
        return written.strip(), is_complete
