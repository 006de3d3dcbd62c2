"""The caller's side of a call at a console without sound: text, heard when it is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from bargein.routes import Message


@final
class TextTransport:
    """A transport that only reads and writes."""

    audio = False
    sample_rate_hz = 24_000

    def __init__(self, take: Callable[[Message], None]) -> None:
        """Keep who is told.

        Args:
            take: Told of every event that reaches the caller; must not wait.
        """
        self.send = take

    def play(self, utterance: int, pcm: bytes) -> None:
        """Take audio, of which there is none."""

    def clear(self, utterance: int, reason: str) -> None:
        """Drop audio, of which there is none."""
