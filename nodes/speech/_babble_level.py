"""Learns how loud the voices are that are there before the caller speaks.

A line that opens in a café has voices from its first moment on, and the recogniser makes words of
them.  Nobody has heard the caller yet, so no level of theirs tells the two apart; but who speaks
into the microphone is louder than what was there.  Until somebody is, a voice may be babble.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

REMEMBERED_S = 7.0
"""How long a moment counts, in seconds."""

KNOWN_AFTER_S, QUIET_AFTER_S = 0.25, 0.096
"""How long the line must have been heard before a sound can be louder than what was there, in
seconds, and the same if the line was quiet."""

VOICED = 0.25
"""The share of the quieter half of those moments that the voice detector takes for voice, from
which on they are babble, and not a quiet line or a machine."""

QUIETER_MOMENTS_S = 1.0
"""How much of the quieter half is remembered to tell, in seconds."""

NEARER_DB = 8.0
"""How much louder than half of those moments somebody nearer is.  In 10 s, 6 of 66 babbles of three
to eight voices had such a sound of `NEARER_S`; of 102 callers 10 dB louder than their babble all
but one had, at the median 0.2 s after they began."""

SURELY_AFTER_S, SURELY_DB = 0.5, 2.0
"""After so many seconds of babble, a window of a turn that is so much louder again is the caller's,
however much softer than before they speak; one of 24 became 10 dB softer in mid-sentence."""

NEARER_S = 0.192
"""How long somebody nearer has to be so loud, in seconds: the stresses of babble are shorter."""

PAUSES_S = 1.0
"""For how long after a loud moment of somebody nearer the sound may still be theirs, in seconds."""


class BabbleLevel:
    """The level of the voices in one call that are further away than the caller."""

    def __init__(self, window_s: float, quietest: float) -> None:
        """Start with a line of which nothing is known.

        Args:
            window_s: Length of a window, in seconds.
            quietest: A line with a lower peak is quiet.
        """

        def windows(seconds: float) -> int:
            return max(1, round(seconds / window_s))

        self._quietest, self._most = quietest, windows(REMEMBERED_S)
        self._least, self._least_if_quiet = windows(KNOWN_AFTER_S), windows(QUIET_AFTER_S)
        self._surely = windows(SURELY_AFTER_S)
        self._nearer_after, self._pauses = windows(NEARER_S), windows(PAUSES_S)
        self._moments: deque[int] = deque()
        self._ordered: list[int] = []
        self._quieter_voiced: deque[bool] = deque(maxlen=windows(QUIETER_MOMENTS_S))
        self._louder = 0  # louder windows in a row
        self._nearer = 0  # windows for which somebody nearer may go on

    def hear(self, loudest: int, *, voiced: bool) -> None:
        """Add the newest window.

        Args:
            loudest: The highest sample of it and of the windows before it that make a syllable.
            voiced: Whether the detector takes it for voice.
        """
        if self._is_known and loudest >= self._limit:
            self._louder += 1
            if self._louder >= self._nearer_after:
                self._nearer = self._pauses
            return
        self._louder = 0
        if self._nearer:
            self._nearer -= 1
            return
        self._moments.append(loudest)
        insort(self._ordered, loudest)
        if len(self._ordered) > self._most:
            del self._ordered[bisect_left(self._ordered, self._moments.popleft())]
        if loudest <= self._ordered[len(self._ordered) // 2]:
            self._quieter_voiced.append(voiced)

    def line_was_quiet(self) -> None:
        """Forget what was heard: nothing has been on the line since then."""
        self._moments.clear()
        self._ordered.clear()
        self._quieter_voiced.clear()
        self._louder = self._nearer = 0
        for _ in range(self._least_if_quiet):
            self.hear(int(self._quietest / 2), voiced=False)

    def is_below(self, loudest: int) -> bool:
        """Return whether there is babble that is much weaker than a sound.

        Args:
            loudest: The highest sample of a window and of those before it that make a syllable.
        """
        surely = len(self._ordered) >= self._surely and self._is_babble
        return surely and loudest >= self._limit * float(10 ** (SURELY_DB / 20))

    @property
    def may_be_all(self) -> bool:
        """Whether what is heard may be babble alone."""
        return self._is_babble and not self._nearer

    @property
    def _is_known(self) -> bool:
        heard = len(self._ordered)
        is_quiet = heard >= self._least_if_quiet and self._ordered[heard // 2] < self._quietest
        return is_quiet or heard >= self._least

    @property
    def _is_babble(self) -> bool:
        voiced = sum(self._quieter_voiced)
        return voiced > 0 and voiced >= VOICED * len(self._quieter_voiced)

    @property
    def _limit(self) -> float:
        return self._ordered[len(self._ordered) // 2] * float(10 ** (NEARER_DB / 20))
