"""Passes on the audio of a clause in whole words, so that another voice can continue after one."""

from __future__ import annotations

from collections.abc import Sequence

from bargein.bridge.events import WordTiming
from bargein.bridge.playout.word_alignment import SaidWords
from bargein.nodes.speech import SpeechPiece

LONGEST_WAIT_S = 1.0
"""The most audio that waits for the end of its word, in seconds: word times later than this are
useless, and nobody speaks a word for so long."""

CLOSE_S = 0.002
"""The error of word times, in seconds."""


class WholeWords:
    """The audio of one clause in progress.

    Attributes:
        text: The clause.
        is_silent: Whether the voice at work has given no sound of it.
    """

    def __init__(self, text: str, sample_rate_hz: int) -> None:
        """Start without audio.

        Args:
            text: The clause.
            sample_rate_hz: The sample rate of its audio.
        """
        self.text = text
        self.is_silent = True
        self._rate_hz = sample_rate_hz
        self._pcm = b""  # audio that waits for the end of its word
        self._words: list[WordTiming] = []  # words not passed on yet, with times from the start
        self._yielded_s = 0.0
        self._said = SaidWords()  # the words passed on, as the voice at work spells them
        self._said_chars = 0
        self._has_times = False

    @property
    def rest(self) -> str:
        """The text after the last word passed on; all of it without word times."""
        return self.text[self._said_chars :]

    @property
    def is_begun(self) -> bool:
        """Whether a word was passed on."""
        return self._said_chars > 0

    def drop_rest(self) -> None:
        """Drop the audio of half a word; the next audio begins with `rest`."""
        self._pcm, self._words, self.is_silent = b"", [], True

    def add(self, pcm: bytes, words: Sequence[WordTiming]) -> SpeechPiece | None:
        """Add a piece; return the audio of the words that it completes.

        Args:
            pcm: PCM16 little-endian mono.
            words: The words, with times from the first sample of this piece.
        """
        begins_s = self._yielded_s + self._waiting_s
        self._words += [
            WordTiming(word.text, begins_s + word.start_s, begins_s + word.end_s) for word in words
        ]
        self._has_times = self._has_times or bool(words)
        self._pcm += pcm
        self.is_silent = self.is_silent and not pcm
        known_s = self._yielded_s + self._waiting_s
        whole = [word for word in self._words if word.end_s <= known_s + CLOSE_S]
        if not self._has_times or self._waiting_s > LONGEST_WAIT_S:
            return self._yield_until(known_s)
        return self._yield_until(max(word.end_s for word in whole)) if whole else None

    def finish(self) -> SpeechPiece | None:
        """Return the rest of the audio; call it when the voice has said the whole clause."""
        return self._yield_until(self._yielded_s + self._waiting_s + 1.0)

    @property
    def _waiting_s(self) -> float:
        return len(self._pcm) / 2 / self._rate_hz

    def _yield_until(self, until_s: float) -> SpeechPiece | None:
        size = max(0, 2 * round((until_s - self._yielded_s) * self._rate_hz))
        pcm, self._pcm = self._pcm[:size], self._pcm[size:]
        given = [word for word in self._words if word.end_s <= until_s + CLOSE_S]
        self._words = [word for word in self._words if word not in given]
        if given:
            self._said.add(word.text for word in given)
            self._said_chars = max(self._said_chars, self._said.length_in(self.text))
        before_s, self._yielded_s = self._yielded_s, self._yielded_s + len(pcm) / 2 / self._rate_hz
        if not pcm and not given:
            return None
        shifted = (
            WordTiming(word.text, max(0.0, word.start_s - before_s), word.end_s - before_s)
            for word in given
        )
        return SpeechPiece(pcm, tuple(shifted))
