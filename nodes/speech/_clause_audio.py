"""Brings the audio of one clause to the rate of the line, as one stream: its seams do not click."""

from __future__ import annotations

from collections.abc import Sequence

from bargein.bridge.audio.resample import Resampler
from bargein.bridge.events import WordTiming


class ClauseAudio:
    """The audio of one clause in progress."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        """Start without audio.

        Args:
            from_hz: The sample rate of the voice.
            to_hz: The sample rate of the line.

        Raises:
            SpeechExtraError: They differ, and soxr is not installed.
        """
        self._resampler = Resampler(from_hz, to_hz)
        self._from_hz, self._to_hz = from_hz, to_hz
        self._pushed_bytes = self._given_bytes = 0

    def push(
        self, pcm: bytes, words: Sequence[WordTiming] = (), *, last: bool = False
    ) -> tuple[bytes, tuple[WordTiming, ...]]:
        """Add a piece, and return what of the clause is ready.

        Args:
            pcm: PCM16 little-endian mono at the voice's rate, cut anywhere, even in mid-sample.
            words: The words of the piece, with times from its first sample.
            last: Whether it is the clause's last piece.

        Returns:
            PCM16 at the line's rate, which may be empty and in total lasts as long as the input;
            and the words, with times from its first sample, which is up to 0.08 s before that of
            the piece.
        """
        begins_s = self._pushed_bytes / 2 / self._from_hz - self._given_bytes / 2 / self._to_hz
        ready = self._resampler.push(pcm, last=last)
        self._pushed_bytes += len(pcm)
        self._given_bytes += len(ready)
        if begins_s:
            words = [
                WordTiming(word.text, begins_s + word.start_s, begins_s + word.end_s)
                for word in words
            ]
        return ready, tuple(words)
