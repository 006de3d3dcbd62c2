"""Detects by loudness alone whether somebody may be speaking, to notice an ear that hears nothing.

It mistakes noise for speech, so it decides nothing about turns.
"""

from __future__ import annotations

import array
import math

import trio

LOUD = 1000
"""The least peak of a loud frame: -30 dBFS. Speech on a telephone has peaks of -20 to -5 dBFS, and
the noise of a quiet room -50."""


QUIET_S = 0.5
"""Silence after which a voice has stopped, in seconds."""

TRUSTED_S = 10.0
"""How long after a loud sound silence means that the caller is quiet, in seconds; after that the
caller may never be loud."""


class Loudness:
    """How long a caller has been loud or quiet.

    Attributes:
        loud_s: The duration of loud sound since `reset()`, in seconds.
    """

    def __init__(self, sample_rate_hz: int) -> None:
        """Start with silence.

        Args:
            sample_rate_hz: The sample rate of the frames.
        """
        self._rate_hz = sample_rate_hz
        self._last_loud_s = -math.inf
        self.loud_s = 0.0
        self._since_s = math.inf

    def add(self, pcm: bytes) -> bool:
        """Add a frame, and return whether it is loud.

        Args:
            pcm: PCM16 little-endian mono.
        """
        samples = array.array("h", pcm)
        is_loud = bool(samples) and (max(samples) >= LOUD or min(samples) <= -LOUD)
        if is_loud:
            now_s = self._last_loud_s = trio.current_time()
            self._since_s = min(self._since_s, now_s)
            self.loud_s += len(samples) / self._rate_hz
        return is_loud

    @property
    def is_quiet(self) -> bool:
        """Whether a caller who was loud has become quiet; False for one who is never loud."""
        return QUIET_S <= self.quiet_s < TRUSTED_S

    @property
    def quiet_s(self) -> float:
        """Seconds since the last loud frame."""
        return trio.current_time() - self._last_loud_s

    @property
    def waits_s(self) -> float:
        """Seconds since the first loud frame after `reset()`; negative if there was none."""
        return trio.current_time() - self._since_s

    def reset(self) -> None:
        """Start counting again, because the ear has reported something."""
        self.loud_s = 0.0
        self._since_s = math.inf
