"""Learns how loud the voices are that are there before the caller speaks.

A line that opens in a café has voices from its first moment on, and the recogniser makes words of
them.  Nobody has heard the caller yet, so no level of theirs tells the two apart; but who speaks
into the microphone is louder than what was there.  Until somebody is, a voice may be babble.
"""

from __future__ import annotations

import math
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

PAUSE_DB = 40.0
"""A moment in the first second of sound that is so much softer than the loud ones shows a line that
is quiet behind one voice: so did 18 in 100 readers who already spoke when the line opened.  At
32 dB 47 in 100 do, but so do 6 of 24 beginnings of one babble of three voices; none does at 40."""

LOUDER_DB, LOUDER_DB_AT_FIRST = 5.0, 8.0
"""How much louder than half of those moments a window is that counts for somebody nearer, in dB,
and the same in the first second, in which a lull passes for all of the babble."""

AT_FIRST_S = 1.0
"""How long the beginning of a call is, in seconds."""

NEARER_DB_S = 0.95
"""Somebody is nearer from this sum on of what louder windows are louder by, and others softer, in
dB times seconds.  In 10 s, 19 of 130 babbles of three to five voices reached it, and none of 40 of
eight; of 540 people 6 to 10 dB louder than their babble all but 16 did within their sentence, at
the median 0.2 s after they began."""

MOST_DB = 6.0
"""What a window counts at most, in dB: a knock is louder than that, and shorter."""

MOST_DB_S = 2 * NEARER_DB_S
"""The highest such sum: its rest shows for how long softer syllables follow a louder one ..."""

SOFTER_DB = 2.0
"""... if they are so much louder than half of the babble.  Without this, 12 of 24 coughs in babble
10 dB below them last for long enough to interrupt, with it 6; callers are the same."""

SURELY_AFTER_S, SURELY_DB = 0.5, 10.0
"""After so many seconds of babble, a window of a turn that is so much louder than half of it is the
caller's, however much softer than before they speak; one of 24 became 10 dB softer in
mid-sentence."""

PAUSES_S = 1.0
"""For how long after a loud moment of somebody nearer the sound may still be theirs, in seconds."""


class BabbleLevel:
    """The level of the voices in one call that are further away than the caller.

    Attributes:
        is_babble: Whether there are such voices, whoever speaks now.
    """

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
        self._at_first, self._pauses = windows(AT_FIRST_S), windows(PAUSES_S)
        self._window_s = window_s
        self._beginning: list[int] | None = []  # the first second's peaks, ordered
        self._moments: deque[int] = deque()
        self._ordered: list[int] = []
        self._level, self._is_known = 0, False  # the median of those moments, and if it counts
        self.is_babble = False
        self._quieter_voiced: deque[bool] = deque(maxlen=windows(QUIETER_MOMENTS_S))
        self._louder_db_s = 0.0
        # Louder windows: the babble's, unless somebody turns out to be nearer.
        self._undecided: deque[tuple[int, bool]] = deque(maxlen=self._most)
        self._nearer = 0  # windows for which somebody nearer may go on

    def hear(self, peak: int, loudest: int, *, voiced: bool) -> None:
        """Add the newest window.

        Args:
            peak: Its highest sample.
            loudest: The highest sample of it and of the windows before it that make a syllable.
            voiced: Whether the detector takes it for voice.
        """
        if self._beginning is not None:
            self._hear_pause(self._beginning, peak)
        if self._is_known:
            self._count(loudest)
            if self._louder_db_s >= NEARER_DB_S:
                self._nearer = self._pauses
                self._undecided.clear()
                return
            if self._nearer:
                self._nearer -= 1
                return
        self._undecided.append((loudest, voiced))
        if not self._louder_db_s:
            while self._undecided:
                self._learn(*self._undecided.popleft())

    def _hear_pause(self, beginning: list[int], peak: int) -> None:
        """Start over if one voice pauses, and nobody else is heard then.

        Args:
            beginning: The peaks of the windows so far, ordered.
            peak: That of the newest window.
        """
        if not beginning and peak < self._quietest:
            return  # some lines open with a silence
        insort(beginning, peak)
        if len(beginning) < max(3, self._least):
            return
        pause, loud = beginning[0], beginning[-3]  # two windows may be a knock
        if pause <= loud * float(10 ** (-PAUSE_DB / 20)):
            self._start_over(pause)
        elif len(beginning) >= self._at_first:
            self._beginning = None

    def _count(self, loudest: int) -> None:
        """Add to the sum by how much a window is louder."""
        least_db = LOUDER_DB if len(self._ordered) >= self._at_first else LOUDER_DB_AT_FIRST
        above_db = 20 * math.log10(max(loudest, 1) / max(self._level, 1)) - least_db
        louder_db_s = self._louder_db_s + min(above_db, MOST_DB) * self._window_s
        self._louder_db_s = min(max(louder_db_s, 0.0), MOST_DB_S)

    def _learn(self, loudest: int, voiced: bool) -> None:
        self._moments.append(loudest)
        insort(self._ordered, loudest)
        if len(self._ordered) > self._most:
            del self._ordered[bisect_left(self._ordered, self._moments.popleft())]
        heard = len(self._ordered)
        self._level = self._ordered[heard // 2]
        is_quiet = heard >= self._least_if_quiet and self._level < self._quietest
        self._is_known = is_quiet or heard >= self._least
        if loudest <= self._level:
            self._quieter_voiced.append(voiced)
            self.is_babble = sum(self._quieter_voiced) >= VOICED * len(self._quieter_voiced)

    def line_was_quiet(self) -> None:
        """Forget what was heard: nothing has been on the line since then."""
        self._start_over(int(self._quietest / 2))

    def _start_over(self, level: int) -> None:
        """Take a level for all that was heard so far."""
        self._beginning = None
        self._moments.clear()
        self._ordered.clear()
        self._quieter_voiced.clear()
        self._undecided.clear()
        self._louder_db_s, self._nearer = 0.0, 0
        for _ in range(self._least):
            self._learn(level, False)

    def is_below(self, loudest: int) -> bool:
        """Return whether there is babble that is much weaker than a sound.

        Args:
            loudest: The highest sample of a window and of those before it that make a syllable.
        """
        surely = len(self._ordered) >= self._surely and self.is_babble
        return surely and loudest >= self._level * float(10 ** (SURELY_DB / 20))

    def goes_on(self, loudest: int) -> bool:
        """Return whether a softer sound may still be that of somebody nearer.

        Args:
            loudest: The highest sample of a window and of those before it that make a syllable.
        """
        was_near = self.is_babble and self._nearer > 0 and self._louder_db_s > 0.0
        return was_near and loudest >= self._level * float(10 ** (SOFTER_DB / 20))

    @property
    def may_be_alone(self) -> bool:
        """Whether what is heard may be babble, and nobody nearer."""
        return self.is_babble and not self._nearer
