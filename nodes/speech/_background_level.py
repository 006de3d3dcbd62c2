"""Learns the level of background sound that never stops: babble in a café, a radio, a machine.

A voice detector takes the babble of a café for speech, so a caller's turn would never end. But
people pause: a few seconds of one voice contain moments of silence, and babble contains none. So a
sound that stays close to the quietest moments of the last seconds is background. A line that is
loud from the first moment of the call on, and evenly so, shows that sooner.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque

REMEMBERED_S = 7.0
"""How long a moment counts, in seconds: within 5 s, some of 24 people who read or order do not
pause."""

KNOWN_AFTER_S = 2.0
"""How long the background must have been heard to count, in seconds, so that a caller who speaks
from the start is not taken for it."""

EVEN_AFTER_S = 0.25
"""The same for a line that has been loud and even since the call began, in seconds. Babble is there
when the call begins, and callers seldom speak before it does."""

EVEN_DB = 12.0
"""How much louder the loud windows of an even sound are at most than its quiet ones. After a
second, that held for 37 of 40 babbles of eight people, and for 3 of 72 readers who already spoke,
on a quiet line, when the call began."""

QUIET = 0.1
"""The quantile of the last seconds that counts as the background's level."""

LOUD = 0.9
"""The quantile of the loud windows of an even sound."""

FADES_DB = 5.0
"""A continuing voice is taken for background only if it is this much weaker than its loud moments:
people who speak without a pause stay close to their own quietest moments."""

RETURNS_AFTER_S = 0.25
"""The gaps of a continuing voice are mostly shorter. A voice that returns after a longer gap ..."""

RETURNS_DB = 4.0
"""... in babble is the caller's only if it is at most this far below the loud moments of the turn.
Of 308 returns of callers 10 dB above their babble 81 % were, as were 29 % of the moments in which
babble passed for a voice."""

BESIDE_DB = 18.0
"""In babble, a café or a kitchen, the quietest moments are this close to the loud ones of a turn;
on a quiet line they are 50 dB below."""


STEADY_S = 1.0
"""After the caller's last loud moment, a sound that stays between `STEADY_DB` and `STAYS_DB` below
the loud moments of the turn for so long, in seconds, is background, even if it began in mid-call:
people who go on speaking are louder at times, or pause.  One of 124 people on a quiet line trailed
off like that, and one of 70 in babble 10 dB below them; there it finds the end of half of the turns
within a second, before the background itself is known."""

STEADY_DB, STAYS_DB = 5.0, 22.0


VOICED = 0.25
"""The share of the quietest moments that the voice detector takes for voice, from which on the
background counts: in babble it does so with nearly all.  White noise or a fan is none to it, and a
level would only hide callers: two of six who spoke 5 dB above white noise were not heard."""

QUIET_MOMENTS_S = 0.5
"""How much of the quietest moments is remembered to tell, in seconds."""


def _ratio(db: float) -> float:
    return float(10 ** (db / 20))


_EVEN, _FADES = _ratio(EVEN_DB), _ratio(-FADES_DB)
_RETURNS, _BESIDE = _ratio(-RETURNS_DB), _ratio(-BESIDE_DB)
_STEADY, _STAYS = _ratio(-STEADY_DB), _ratio(-STAYS_DB)


class BackgroundLevel:
    """The level of the background in one call.

    Attributes:
        quietest: The peak of the quietest moments of the last seconds; infinite before any.
    """

    def __init__(self, above_db: float | None, window_s: float, quietest: float) -> None:
        """Start without a background.

        Args:
            above_db: How much louder than its quietest moments the background can be; ``None``
                takes nothing for background.
            window_s: Length of a window, in seconds.
            quietest: A line with a lower peak is quiet.
        """
        self.quietest = math.inf
        self._quiet_line = quietest
        self._above = None if above_db is None else _ratio(above_db)
        self._recent: deque[int] = deque()
        self._ordered: list[int] = []
        self._most = round(REMEMBERED_S / window_s)
        self._least = round(KNOWN_AFTER_S / window_s)
        self._least_if_even = round(EVEN_AFTER_S / window_s)
        self._quiet_voiced: deque[bool] = deque(maxlen=max(1, round(QUIET_MOMENTS_S / window_s)))
        self._newest_voiced: deque[bool] = deque(maxlen=max(1, round(RETURNS_AFTER_S / window_s)))
        self._newest: deque[int] = deque(maxlen=max(1, round(STEADY_S / window_s)))
        self._beginning: list[int] = []  # the peaks of the first windows, ordered

    def hear(
        self, peak: int, loudest: int, loud: float | None, silent_s: float, *, voiced: bool
    ) -> bool:
        """Add the newest window, and return whether its sound is no louder than the background.

        Args:
            peak: Its highest sample.
            loudest: The same of it and of the few windows before it.
            loud: The peak of the loud moments of this turn's voice; None if there is none.
            silent_s: How long the voice has been silent, in seconds; 0 while it continues.
            voiced: Whether the detector takes the window for voice.
        """
        passed = loud is not None and _passes(self._newest_voiced)
        self._newest_voiced.append(voiced)
        if len(self._recent) < self._least:
            insort(self._beginning, peak)
        self._recent.append(loudest)
        self._newest.append(loudest)
        insort(self._ordered, loudest)
        if len(self._recent) > self._most:
            del self._ordered[bisect_left(self._ordered, self._recent.popleft())]
        self.quietest = self._ordered[int(QUIET * len(self._ordered))]
        if loudest <= self.quietest:
            self._quiet_voiced.append(voiced)
        if self._above is None:
            return False
        if loud is not None and passed and self._is_steady(loud, silent_s):
            return loudest < loud * _RETURNS
        is_known = len(self._ordered) >= self._least
        if not (_passes(self._quiet_voiced) if is_known else self._is_even()):
            return False
        if loud is None:
            return loudest < self.quietest * self._above
        is_beside = self.quietest >= loud * _BESIDE
        if is_beside and silent_s >= RETURNS_AFTER_S:
            return loudest < loud * _RETURNS
        return loudest < min(self.quietest * self._above, loud * _FADES)

    def is_near(self, loud: float | None) -> bool:
        """Return whether what is heard behind the words of this turn is nearly as loud as they.

        Args:
            loud: The peak of the loud moments of this turn; None if there is none.
        """
        return loud is not None and min(self._newest, default=0) >= loud * _BESIDE

    def _is_steady(self, loud: float, silent_s: float) -> bool:
        """Whether the caller seems to have stopped, and something softer goes on.

        Args:
            loud: The peak of the loud moments of this turn.
            silent_s: How long the voice has been silent, in seconds.
        """
        if min(self._newest) < loud * _STAYS:
            return False
        return silent_s >= RETURNS_AFTER_S or max(self._newest) < loud * _STEADY

    def _is_even(self) -> bool:
        """Whether the line has been loud and even since the call began."""
        heard = len(self._ordered)
        if heard < self._least_if_even or self._ordered[0] < self._quiet_line:
            return False
        quiet, loud = (self._beginning[int(q * (heard - 1))] for q in (QUIET, LOUD))
        return loud <= quiet * _EVEN


def _passes(voiced: deque[bool]) -> bool:
    """Whether some windows pass for voice."""
    return sum(voiced) >= VOICED * len(voiced)
