"""Learns how a room smears the agent's echo over time, and predicts the echo's spectrum.

In a room with a long reverberation, what the microphone hears at a moment is a mixture of half a
second of the agent's speech, and resembles no single moment of it.  The power of that mixture is
close to a sum of the powers that were played, each weighted by how much of it comes back after that
time.  The weights belong to the room, so they are learnt while the agent speaks.  Powers carry no
phase, so a player whose position is known to within a few milliseconds is known well enough; a
linear canceller would need it to the sample.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REACH = 45
"""Columns of 16 ms that one column of an echo is made of: 0.72 s.  Of these, 0.1 s is the way from
the player, and 0.6 s the reverberation of a living room."""

STEP = 0.2
"""How much of an error the weights correct at once.  In a room with a reverberation of 0.6 s, 0.02
left 4 of 433 voiced windows of the agent's speech unknown, 0.1 left one, and 0.3 none."""

_LEAST_POWER = 1e-9
"""Power of a bin that is silent, for samples of -1 to 1."""


class EchoReverberation:
    """The spectrum of the echo of one call, predicted from what was played."""

    def __init__(self, bins: int) -> None:
        """Begin without knowing the room.

        Args:
            bins: Bins of a spectrum.
        """
        import numpy as np

        self._played = np.zeros((REACH, bins), np.float32)  # the newest first
        self._weights = np.zeros(REACH, np.float32)

    def predict(
        self, played: NDArray[np.float32], heard: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the power of the echo in the newest columns, and learn from what was heard.

        Args:
            played: Power of the newest columns that were played, shape (columns, bins).
            heard: Power of the same columns of the microphone, of the same shape.

        Returns:
            What the microphone would give if nobody else spoke, of the same shape.
        """
        import numpy as np

        found = np.empty_like(heard)
        for column, (ours, theirs) in enumerate(zip(played, heard, strict=True)):
            self._played[1:] = self._played[:-1]
            self._played[0] = ours
            self._learn(theirs)
            found[column] = self._weights @ self._played
        return found

    def _learn(self, heard: NDArray[np.float32]) -> None:
        """Take a step of normalised least mean squares, in which every bin counts about the same.

        A weight is a share of power, so it is never negative: what the caller says cannot be
        explained away by subtracting one moment of the agent's speech from another.
        """
        import numpy as np

        usual = self._played.mean(0) + _LEAST_POWER
        relative = self._played / usual
        error = (heard - self._weights @ self._played) / usual
        step = STEP * (relative @ error) / (np.square(relative).sum() + 1e-3)
        self._weights = np.maximum(self._weights + step, 0.0)
