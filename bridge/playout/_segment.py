"""A piece of an utterance: its text, and the audio that says it."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..events import AgentAudio, WordTiming
from ._word_ends import word_ends
from ._word_timing import CHARS_PER_S, SLACK_S, WordTimes, heard_length, said_end

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
            self._times.update(self.words, duration_s, complete=self.complete)
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
            end_s = self.duration_ms / 1000 - SLACK_S if self.complete else math.inf
            return min(end_s, times.quiet_until_s(inside_s)) - CLOSE_S
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


class Segments:
    """The pieces of an utterance's audio, in order."""

    __slots__ = ("_says_text", "_whole", "has_word_times", "pieces")

    def __init__(self) -> None:
        self.pieces: list[Segment] = []
        self.has_word_times = False
        """Whether the voice gave word timings."""
        self._says_text = False
        """Whether the audio came with the text it says."""
        self._whole: Segment | None = None

    def add(self, audio: AgentAudio, at_ms: float, generated: str) -> None:
        """Record the text and the word timings of some audio.

        Args:
            audio: The audio.
            at_ms: Where it starts.
            generated: The text of the utterance so far.
        """
        self._measure_last(at_ms)
        if audio.text or not self.pieces:
            self.pieces.append(Segment(self._as_generated(audio.text, generated), at_ms))
            self._says_text = self._says_text or bool(audio.text)
        if audio.words:
            self.has_word_times = True
            segment = self.pieces[-1]
            before_s = segment.duration_ms / 1000
            segment.words += tuple(
                WordTiming(word.text.strip(), before_s + word.start_s, before_s + word.end_s)
                for word in audio.words
            )

    def end_with(self, audio: AgentAudio) -> None:
        """Record whether some audio is the last of its piece."""
        self.pieces[-1].complete = audio.last

    def _as_generated(self, said: str, generated: str) -> str:
        """Return the text of a piece, with the spaces of the utterance's text."""
        begin = sum(len(segment.text) for segment in self.pieces)
        if generated.startswith(said, begin):
            return said
        end = said_end(said, generated, begin)
        return said if end is None else generated[begin:end]

    def _measure_last(self, audio_ms: float) -> None:
        """Update the length of the last piece; done on demand, not for each piece of audio."""
        if self.pieces:
            last = self.pieces[-1]
            last.duration_ms = audio_ms - last.start_ms

    def texts(self, generated: str, audio_ms: float, *, complete: bool) -> list[Segment]:
        """Return the pieces that say the text: the audio as one, if it came without its text.

        Args:
            generated: The text of the utterance so far.
            audio_ms: How long its audio is so far.
            complete: Whether that is all of it.
        """
        if self._says_text:
            self._measure_last(audio_ms)
            return self.pieces
        whole = self._whole
        if whole is None or whole.text != generated:
            whole = self._whole = Segment(generated, 0.0)
        whole.duration_ms, whole.complete = audio_ms, complete
        whole.words = self.pieces[0].words if self.pieces else ()
        return [whole]

    def forget_words_before(self, position_ms: float, generated: str) -> None:
        """Forget the word timings of pieces that will not be sent again: an answer may be long.

        Args:
            position_ms: Where the audio that may be sent again starts.
            generated: The text of the utterance so far.
        """
        past, chars = 0, 0
        for segment in self.pieces[:-1]:
            is_past = segment.complete and segment.start_ms + segment.duration_ms <= position_ms
            if not is_past or not generated.startswith(segment.text, chars):
                break
            past, chars = past + 1, chars + len(segment.text)
        if past > 1:
            self.pieces[:past] = [Segment.joined(self.pieces[:past])]


def reach(segments: Iterable[Segment], generated: str, played_ms: float) -> tuple[int, float]:
    """Return how many characters are said by a position, and where the next word ends at the
    earliest, if nothing more becomes known; 0 if that cannot be foreseen.

    Args:
        segments: The result of ``Segments.texts()``.
        generated: The text of the utterance so far.
        played_ms: The position.
    """
    chars, next_word_ms = 0, 0.0
    for segment in segments:
        if not generated.startswith(segment.text, chars):
            break  # a piece was never synthesised; what follows is no prefix
        inside_s = (played_ms - segment.start_ms) / 1000
        says_nothing = segment.complete and not segment.duration_ms
        if inside_s <= 0 and not (says_nothing and 0 < segment.start_ms <= played_ms):
            break
        whole = segment.complete and inside_s >= segment.duration_ms / 1000 - 0.001
        if not whole:
            heard = segment.heard_length(inside_s, segment.span_s(inside_s))
            chars += heard
            next_word_ms = segment.start_ms + 1000 * segment.quiet_until_s(inside_s, heard)
            break
        chars += len(segment.text)
    return min(chars, len(generated)), next_word_ms


def word_start_ms(segments: Iterable[Segment], chars: int, position_ms: float) -> float:
    """Return where the word that ends at an offset of the text starts.

    Args:
        segments: The result of ``Segments.texts()``.
        chars: The offset.
        position_ms: How much was played; the result is at most this.
    """
    before = 0
    for segment in segments:
        end = chars - before
        if end <= len(segment.text):
            inside_s = (position_ms - segment.start_ms) / 1000
            start_ms = segment.start_ms + segment.word_start_s(end, inside_s) * 1000
            return min(start_ms, position_ms)
        before += len(segment.text)
    return 0.0


def _expected_s(segment: Segment, inside_s: float) -> float:
    """Return the expected length of a piece that still grows; its end is never reached yet."""
    spoken_s = len(segment.text) / CHARS_PER_S
    return max(segment.duration_ms / 1000, spoken_s, inside_s + 0.001)


def last_word_start_s(
    text: str,
    words: Sequence[WordTiming] | WordTimes,
    end: int,
    duration_s: float,
    ends: Sequence[int] | None = None,
) -> float:
    """Return where in the audio the word that ends at an offset of the text starts, in seconds.

    Args:
        text: What the audio says.
        words: The timing of its words, aligned or not; empty if unknown.
        end: The offset in ``text`` at which the word ends; above 0.
        duration_s: Seconds of the whole audio, or of the audio so far.
        ends: The result of ``word_ends(text)``; ``None`` computes it.
    """
    ends = word_ends(text) if ends is None else ends
    earlier = bisect_left(ends, end)
    before = ends[earlier - 1] if earlier else 0
    begin = end - len(text[before:end].lstrip())
    if words and not isinstance(words, WordTimes):
        words = WordTimes(text, words, duration_s, complete=True)
    timed = words.start_s(end) if isinstance(words, WordTimes) else None
    return duration_s * begin / len(text) if timed is None else timed
