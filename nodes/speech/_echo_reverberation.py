"""Learns how a room returns the agent's speech, and predicts the power of its echo.

What the microphone hears of the agent at a moment is a mixture of the last half second and more of
what was played.  The power of that mixture is close to a sum of the powers that were played, each
weighted by how much of it returns after that time, and by how the loudspeaker and the room colour
it.  Weights and colour belong to the place, so they are learnt while the agent speaks.  Powers
carry no phase, so it is enough to know the player's position to within a few milliseconds; a linear
canceller would need it to the sample, and would have to learn anew after each pause of the player.

The power of one bin of a mixture scatters around its mean as much as the mean is large, in a loud
vowel as in the softest end of a reverberation.  So errors count by their ratio to the prediction
(the Itakura-Saito divergence), and a prediction is right in the reverberation behind a word, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

REACH = 64
"""Columns of 16 ms that one column of an echo is made of: 1.02 s.  Of these, up to 0.42 s is the
way from the player, and 0.6 s the reverberation of a living room."""

MOST_COLUMNS = 8
"""Columns that may come at once."""

BAND = 8
"""Bins that share their colour, and are learnt from together."""

KEPT = 0.985
"""Share of what was learnt that counts after another column in which the agent is heard: of what
was learnt a second ago, 0.4."""

CLIPPED = 3.0
"""How many times more than predicted counts at most."""

CLIPPED_CALLER = 1.5
"""The same while the caller seems to speak, or others do.  With 3, one half of the windows of
babble are taken for an echo in the end; with 1, an echo that grew louder was not learnt."""

COLOUR = 10.0
"""By how much the colour of a band may differ from the others', in either direction.  A column that
is softer than even that explains shows no colour: its echo is still on its way."""

_COLOUR_KEPT = 0.99
_DOUBT = 0.01
"""How much the weights at the beginning count, in columns."""

_DIRECT_S = 0.4
"""The direct sound is expected within this time, before anything is known."""

_LOUD = 8.0
"""Power of the echo that is expected then, over what is played: what is less is learnt at once."""

_DECAY_S = 0.5
"""The reverberation that is expected then, until it is 60 dB weaker."""

_LEAST = 1e-6
"""Least weight: after a long call behind an echo canceller, an echo that comes back is learnt in
seconds."""

SILENT = 1e-9
"""Power of a bin that is silent, for samples of -1 to 1."""


class EchoReverberation:
    """The power of the echo of one call, predicted from what was played."""

    def __init__(self, bins: int, column_s: float) -> None:
        """Expect a loud echo and an ordinary room.

        Args:
            bins: Bins of a spectrum.
            column_s: How far apart columns are, in seconds.
        """
        import numpy as np

        self._bands = np.arange(0, bins, BAND)
        self._widths = np.diff(np.append(self._bands, bins)).astype(int)
        columns = REACH + MOST_COLUMNS - 1  # the newest first
        self._played = np.zeros((columns, bins), np.float32)
        self._by_band = np.zeros((columns, len(self._bands)), np.float32)
        late_s = np.maximum(np.arange(REACH) * column_s - _DIRECT_S, 0.0)
        expected = 10 ** (-6 * late_s / _DECAY_S)
        self._weights = (_LOUD * expected / expected.sum()).astype(np.float32)
        # A weight is the mean of what its moment explains of the microphone, over its own mean.
        self._explained = self._weights * _DOUBT
        self._counted = np.full(REACH, _DOUBT, np.float32)
        self._coloured = np.zeros((2, len(self._bands)), np.float32)
        self._colour = self._learnt_colour()

    def predict(self, played: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the power of the echo in the newest columns.

        Args:
            played: Power of the newest columns that were played, shape (columns, bins).

        Returns:
            What the microphone would give on average if nobody else spoke, of the same shape.
        """
        import numpy as np

        count = len(played)
        _prepend(self._played, played)
        _prepend(self._by_band, self._band_means(played))
        self._colour = self._learnt_colour()
        colour = self._colour.repeat(self._widths)
        found = np.empty_like(played)
        for column in range(count):
            at = count - 1 - column
            found[column] = self._weights @ self._played[at : at + REACH] * colour
        return found

    def learn(self, heard: NDArray[np.float32], *, is_echo: bool) -> None:
        """Learn from what was heard in the columns of the last prediction.

        Args:
            heard: Power of the microphone, of the shape of the prediction.
            is_echo: Whether it seemed to be the agent alone.
        """
        most = CLIPPED if is_echo else CLIPPED_CALLER
        count = len(heard)
        for column, power in enumerate(self._band_means(heard)):
            at = count - 1 - column
            played = self._by_band[at : at + REACH]
            if played.max() > SILENT:
                self._learn(power, played, most)

    def _band_means(self, power: NDArray[np.float32]) -> NDArray[np.float32]:
        import numpy as np

        return np.asarray(np.add.reduceat(power, self._bands, axis=1) / self._widths, np.float32)

    def _learnt_colour(self) -> NDArray[np.float32]:
        """Return the gain of each band."""
        import numpy as np

        heard, uncoloured = self._coloured + _DOUBT
        return np.asarray(np.clip(heard / uncoloured, 1 / COLOUR, COLOUR), np.float32)

    def _learn(self, heard: NDArray[np.float32], played: NDArray[np.float32], most: float) -> None:
        """Learn from one column of bands.

        Each moment explains a share of what is heard, as large as its share of the prediction; its
        weight becomes the mean of that.  So no weight is ever negative: what the caller says cannot
        be explained away by subtracting one moment of the agent's speech from another.
        """
        import numpy as np

        colour = self._colour
        echo = self._weights @ played * colour
        predicted = echo + SILENT
        ratio = np.minimum(heard / predicted, most)
        gain = colour / predicted
        of_moments = played @ np.stack([gain * ratio, gain], axis=1)
        self._explained = KEPT * self._explained + self._weights * of_moments[:, 0]
        self._counted = KEPT * self._counted + of_moments[:, 1]
        self._weights = np.maximum(self._explained / self._counted, _LEAST)
        if heard.sum() * COLOUR < predicted.sum():
            return
        share = echo / predicted
        self._coloured *= _COLOUR_KEPT
        self._coloured += np.stack([ratio * share, share / colour])


def _prepend(history: NDArray[np.float32], new: NDArray[np.float32]) -> None:
    """Put columns in front of a history, the newest first."""
    history[len(new) :] = history[: -len(new)]
    history[: len(new)] = new[::-1]
