"""The transport of a console without sound: text counts as heard when it is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from bargein.routes import Message


@final
class TextTransport:
    """A text-only transport."""

    audio = False
    sample_rate_hz = 24_000

    def __init__(self, show: Callable[[Message], None]) -> None:
        """Keep the function for events.

        Args:
            show: Called with every event that reaches the caller; must not wait.
        """
        self.send = show

    def play(self, utterance: int, pcm: bytes) -> None:
        """Ignore audio; there is none."""

    def clear(self, utterance: int, reason: str) -> None:
        """Drop audio; there is none."""
