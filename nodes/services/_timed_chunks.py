"""Audio as base64 in JSON with the times of its words, as several vendors send it."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, final

from bargein.bridge.events import WordTiming
from bargein.nodes.speech import SpeechPiece


@final
class TimedChunks:
    """Reads the chunks and the times of one utterance.

    Times count from the utterance, from a flush, or from the message before: vendors do not say,
    but times that run back have started anew.
    """

    def __init__(self, sample_rate_hz: int, *, back_s: float = 0.01) -> None:
        """Start at the first sample.

        Args:
            sample_rate_hz: Sample rate of the audio.
            back_s: How far times may run back without having started anew, in seconds.
        """
        self._sample_rate_hz = sample_rate_hz
        self._back_s = back_s
        self._audio_s = self._flush_s = 0.0  # of all audio, and of that before this flush
        self._from_s = 0.0  # where times count from
        self._last_s = 0.0  # where the newest word ends

    def audio(self, data: str) -> SpeechPiece:
        """Return the audio of a chunk.

        Raises:
            TypeError: It is no text.
            ValueError: It is no base64.
        """
        pcm = base64.b64decode(data)
        self._audio_s += len(pcm) / 2 / self._sample_rate_hz
        return SpeechPiece(pcm)

    def words(self, times: Mapping[str, Any]) -> SpeechPiece:
        """Return the words of the audio so far.

        Args:
            times: Three lists of one length: ``words``, ``start`` and ``end``, in seconds.

        Raises:
            KeyError: A list is missing.
            TypeError: A time is no number, or a list is none.
            ValueError: The lists are of different lengths.
        """
        words = [*zip(times["words"], times["start"], times["end"], strict=True)]
        if words and words[0][1] + self._from_s < self._last_s - self._back_s:
            is_of_flush = self._flush_s >= self._last_s - self._back_s
            self._from_s = self._flush_s if is_of_flush else self._last_s
        before_s = self._audio_s - self._from_s
        self._last_s = max([self._last_s, *(end + self._from_s for _, _, end in words)])
        return SpeechPiece(
            b"",
            tuple(
                WordTiming(str(word).strip(), start - before_s, end - before_s)
                for word, start, end in words
                if str(word).strip()
            ),
        )

    def flushed(self) -> None:
        """Note that the audio of a flush is complete."""
        self._flush_s = self._audio_s
