"""Learns how loud the agent's echo can be in one call, from what the microphone gave until now.

How much of the loudspeaker gets back to the microphone is a property of the place: next to nothing
with headphones or behind an echo canceller, a tenth of the power on a loud telephone.  While the
agent speaks and the caller does not, the microphone shows it.  A sound that is much louder than
that is somebody.
"""

from __future__ import annotations

from collections import deque
from math import log10
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REMEMBERED = 250
"""Stretches of 16 ms, 4 s in which the agent spoke, of which the path is learned."""

LEAST = 30
"""So many, 0.5 s, are needed to say anything."""

USUAL = 0.5
"""Share of them that were softer than what counts as usual: callers talk over the agent for less
than half of the time."""

MARGIN_DB = 15.0
"""How much louder than usual a syllable of an echo may be, between pauses and reverberation."""

SPOKEN = 1e-5
"""Mean square, for samples of -1 to 1, from which on the agent speaks: -50 dBFS."""

_SILENCE = 1e-9
_AVERAGED = 8  # stretches, 0.13 s


class EchoPath:
    """The loudness of the echo of one call."""

    def __init__(self, delays: int) -> None:
        """Begin without knowing anything.

        Args:
            delays: By how many stretches of 16 ms an echo may be late.
        """
        self._delays = delays
        self._played: deque[float] = deque(maxlen=_AVERAGED)
        self._played_means: deque[float] = deque(maxlen=delays)
        self._heard: deque[float] = deque(maxlen=_AVERAGED)
        self._usual: deque[float] = deque(maxlen=REMEMBERED)
        self._spoken_for = 0
        self._now_db: float | None = None

    def add(self, played: NDArray[np.float32], heard: NDArray[np.float32], stretches: int) -> None:
        """Take in what was played and heard at one time.

        Args:
            played: Samples of -1 to 1; may be of another rate than the others.
            heard: The same.
            stretches: How many of 16 ms they are.
        """
        for our, their in zip(_powers(played, stretches), _powers(heard, stretches), strict=True):
            self._played.append(our)
            self._heard.append(their)
            self._played_means.append(sum(self._played) / _AVERAGED)
            loudest = max(self._played_means)
            if loudest < SPOKEN:
                self._spoken_for, self._now_db = 0, None
                continue
            self._spoken_for += 1
            mean = sum(self._heard) / _AVERAGED
            self._now_db = 10 * log10((mean + _SILENCE) / loudest)
            if self._spoken_for > self._delays:  # before that the echo may not have come
                self._usual.append(self._now_db)

    def agent_is_silent(self) -> None:
        """Forget the last second, after which nothing of an echo is left; not how loud it was."""
        self._spoken_for, self._now_db = 0, None
        for recent in (self._played, self._played_means, self._heard):
            recent.clear()

    def excess_db(self) -> float:
        """Return by how much the sound of now is louder than an echo can be, in dB.

        Returns:
            0 or less if it may be an echo, or too little is known to say.
        """
        if self._now_db is None or len(self._usual) < LEAST:
            return 0.0
        usual_db = sorted(self._usual)[int(USUAL * len(self._usual))]
        return self._now_db - usual_db - MARGIN_DB


def _powers(samples: NDArray[np.float32], stretches: int) -> list[float]:
    length = len(samples) // stretches
    means = (samples[: length * stretches].reshape(stretches, length) ** 2).mean(1)
    return [float(mean) for mean in means]
