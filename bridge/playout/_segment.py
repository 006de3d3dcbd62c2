"""A piece of an utterance: its text, and the audio that says it."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from ..events import WordTiming
from ._resume_point import last_word_start_s
from ._word_ends import word_ends
from ._word_timing import CHARS_PER_S, WordTimes, heard_length, quiet_until_s

CLOSE_S = 0.001
"""The tolerance for rounding errors in positions, in seconds."""


@dataclass(slots=True, eq=False)
class Segment:
    """A piece of text, and the position of its audio in the utterance."""

    text: str
    start_ms: float
    duration_ms: float = 0.0
    """Its length so far; final once ``complete``.  The utterance updates it; for the last one, on
    demand."""
    words: tuple[WordTiming, ...] = ()
    complete: bool = False
    _ends: list[int] | None = None
    """Where its words end, computed on demand."""
    _times: WordTimes | None = None
    _times_of: tuple[int, float] = (0, 0.0)
    """What is known when its words are said, and for how many words and which length."""

    @classmethod
    def joined(cls, segments: Sequence[Segment]) -> Segment:
        """Join several complete segments to one, without the timing of their words."""
        first, last = segments[0], segments[-1]
        duration_ms = last.start_ms + last.duration_ms - first.start_ms
        text = "".join(segment.text for segment in segments)
        return cls(text, first.start_ms, duration_ms, complete=True)

    def heard_length(self, inside_s: float, span_s: float) -> int:
        """Return how many of its characters were heard.

        Args:
            inside_s: Seconds of its audio that were played.
            span_s: Seconds of its audio, as far as known.
        """
        return heard_length(self.text, self._timed() or (), inside_s, span_s, self.ends)

    @property
    def ends(self) -> list[int]:
        """Where its words end."""
        if self._ends is None:
            self._ends = word_ends(self.text)
        return self._ends

    def _timed(self) -> WordTimes | None:
        """Return when its words are said, if its voice gave times."""
        if not self.words:
            return None
        known = (len(self.words), self.duration_ms if self.complete else math.inf)
        if self._times is not None and known == self._times_of:
            return self._times
        duration_s = self.duration_ms / 1000
        if self._times is None or known[0] < self._times_of[0]:
            self._times = WordTimes(
                self.text, self.words, duration_s, complete=self.complete, ends=self.ends
            )
        else:
            new = self.words[self._times_of[0] :]
            self._times.update(new, duration_s, complete=self.complete)
        self._times_of = known
        return self._times

    def span_s(self, inside_s: float) -> float:
        """Return how long its audio is or, if it still grows, will be.

        Args:
            inside_s: Seconds of its audio that were played.
        """
        duration_s = self.duration_ms / 1000
        return duration_s if self.complete else _expected_s(self, inside_s)

    def quiet_until_s(self, inside_s: float, heard: int) -> float:
        """Return a position in its audio before which no further word is heard, even if it grows.

        Args:
            inside_s: Seconds of its audio that were played.
            heard: The result of ``heard_length()``.

        Returns:
            At most the end of the next word; 0 if unknown, infinite if it ends with audio that
            still grows.
        """
        times = self._timed()
        if times is not None:
            duration_s = self.duration_ms / 1000 if self.complete else math.inf
            return quiet_until_s(times, inside_s, duration_s) - CLOSE_S
        following = bisect_right(self.ends, heard)
        if following == len(self.ends):
            return 0.0
        if not self.complete and self.ends[following] == len(self.text):
            return math.inf
        # Audio that still grows may become longer than expected, but not shorter.
        return self.span_s(0.0) * self.ends[following] / len(self.text) - CLOSE_S

    def word_start_s(self, end: int, inside_s: float) -> float:
        """Return where in its audio the word that ends at an offset starts, in seconds.

        Args:
            end: The offset in its text.
            inside_s: Seconds of its audio that were played.
        """
        times = self._timed() or ()
        return last_word_start_s(self.text, times, end, self.span_s(inside_s), self.ends)


def _expected_s(segment: Segment, inside_s: float) -> float:
    """Return the expected length of a piece that still grows; its end is never reached yet."""
    spoken_s = len(segment.text) / CHARS_PER_S
    return max(segment.duration_ms / 1000, spoken_s, inside_s + 0.001)
