"""Gives out the sound of a clause in whole words, so that another voice can go on behind one."""

from __future__ import annotations

from collections.abc import Sequence

from bargein.bridge.events import WordTiming
from bargein.nodes.speech import SpeechPiece

LONGEST_WAIT_S = 1.0
"""How much sound waits at most for the end of its word: times of words that come later than this
are of no use, and nobody speaks a word for so long."""

CLOSE_S = 0.002
"""What times of words are off by."""


class WholeWords:
    """The sound of one clause on its way.

    Attributes:
        text: The clause.
    """

    def __init__(self, text: str, sample_rate_hz: int) -> None:
        """Begin with no sound.

        Args:
            text: The clause.
            sample_rate_hz: Of its sound.
        """
        self.text = text
        self._rate_hz = sample_rate_hz
        self._pcm = b""  # that waits for the end of its word
        self._words: list[WordTiming] = []  # that were not given out, with times from the start
        self._given_s = 0.0
        self._said_chars = 0
        self._has_times = False

    @property
    def rest(self) -> str:
        """The text behind the last word that was given out; all of it if no times are known."""
        return self.text[self._said_chars :]

    @property
    def is_begun(self) -> bool:
        """Whether a word of it was given out."""
        return self._said_chars > 0

    def drop_rest(self) -> None:
        """Forget the sound of half a word; the next sound begins with `rest`."""
        self._pcm, self._words = b"", []

    def add(self, pcm: bytes, words: Sequence[WordTiming]) -> SpeechPiece | None:
        """Take in a piece, and return the sound of the words that it completes.

        Args:
            pcm: PCM16 little-endian mono.
            words: Where the words lie, counted from the first sample of this piece.
        """
        begins_s = self._given_s + self._waiting_s
        self._words += [
            WordTiming(word.text, begins_s + word.start_s, begins_s + word.end_s) for word in words
        ]
        self._has_times = self._has_times or bool(words)
        self._pcm += pcm
        known_s = self._given_s + self._waiting_s
        whole = [word for word in self._words if word.end_s <= known_s + CLOSE_S]
        if not self._has_times or self._waiting_s > LONGEST_WAIT_S:
            return self._give(known_s)
        return self._give(max(word.end_s for word in whole)) if whole else None

    def finish(self) -> SpeechPiece | None:
        """Return what is left: the voice has said all of the clause."""
        return self._give(self._given_s + self._waiting_s + 1.0)

    @property
    def _waiting_s(self) -> float:
        return len(self._pcm) / 2 / self._rate_hz

    def _give(self, until_s: float) -> SpeechPiece | None:
        size = max(0, 2 * round((until_s - self._given_s) * self._rate_hz))
        pcm, self._pcm = self._pcm[:size], self._pcm[size:]
        given = [word for word in self._words if word.end_s <= until_s + CLOSE_S]
        self._words = [word for word in self._words if word not in given]
        for word in given:
            at = self.text.find(word.text, self._said_chars)
            self._said_chars = at + len(word.text) if at >= 0 else self._said_chars
        before_s, self._given_s = self._given_s, self._given_s + len(pcm) / 2 / self._rate_hz
        if not pcm and not given:
            return None
        shifted = (
            WordTiming(word.text, max(0.0, word.start_s - before_s), word.end_s - before_s)
            for word in given
        )
        return SpeechPiece(pcm, tuple(shifted))
