"""Decides how much audio is gathered before a sound: more on a line whose audio comes late.

The page decides the same in ``jitter-buffer.js``.
"""

from __future__ import annotations

from typing import final

MOST_S = 0.3
"""The longest buffer, in seconds: the server sends at most 0.4 s ahead of what is heard."""

UNDERRUNS = 2
WITHIN_S = 10.0
"""This many underruns within so many seconds let the buffer grow: one alone is chance."""

LONGEST_GAP_S = 1.0
"""A longer gap within an utterance, in seconds, is a voice that thinks: no fault of the line."""

CALM_S = 30.0
"""After so many seconds without an underrun the buffer shrinks by half."""


@final
class JitterBuffer:
    """How many seconds of audio are gathered before each start, and again after an underrun."""

    def __init__(self, least_s: float) -> None:
        """Start with the shortest buffer.

        Args:
            least_s: Its length, in seconds; one that is longer than ``MOST_S`` never grows.
        """
        self._least_s = self._length_s = least_s
        self._underruns_s: list[float] = []
        self._calm_since_s = 0.0

    def continues(self, dry_s: float, now_s: float) -> None:
        """Record that audio of an utterance goes on.

        Args:
            dry_s: When it had run out.
            now_s: The time.
        """
        if now_s - dry_s > LONGEST_GAP_S:
            return
        self._underruns_s = [at_s for at_s in self._underruns_s if at_s > now_s - WITHIN_S]
        self._underruns_s.append(now_s)
        self._calm_since_s = now_s
        if len(self._underruns_s) >= UNDERRUNS:
            self._length_s = max(MOST_S, self._least_s)

    def length_s(self, now_s: float) -> float:
        """Return how many seconds of audio are gathered now."""
        while self._length_s > self._least_s and now_s - self._calm_since_s > CALM_S:
            self._length_s = max(self._least_s, self._length_s / 2)
            self._calm_since_s += CALM_S
        return self._length_s
