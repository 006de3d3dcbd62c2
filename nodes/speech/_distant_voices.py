"""Learns how loud a caller is, to tell them from somebody who talks further away.

A turn sets the level, from the peaks of its windows, once it has words: before that it is unknown
whose voice it is. A much weaker voice afterwards is a television or a colleague.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

LOUD = 0.9
"""The level of a turn is this quantile of the peaks of its voiced windows ..."""

USUAL, ABOVE_USUAL_DB = 0.75, 3.0
"""... but at most so much above this lower one, in dB: a few stresses make a quiet speaker no loud
one.  Between two turns of equally loud people, the higher quantile differed by up to 6 dB."""

LEAST_WINDOWS = 10
"""Voiced windows that a turn needs for a level: 0.32 s."""

KEEPS_OPEN_DB = 4.0
"""How much weaker the voice of a continuing turn may also be: the last syllables of a sentence are
10 to 15 dB below the first."""

LOST_WINDOWS = 320
"""After so many weak speech-like windows, 10 s, without the caller's voice, the level is forgotten:
the caller has moved away from the microphone, or uses another telephone."""

LONGEST_TURN = 1_000
"""How many windows of a turn are kept: the last 32 s."""

NEAR_LIMIT_DB = 20.0
"""A voice that is nowhere so far above the limit goes below it in its soft consonants and closures.
Callers at the usual level are 35 dB above it."""


FADES_DB = 14.0
"""A window so much weaker than the loudest one of a voice is the end of a word, or a closure: three
of four throats that are cleared fall so low two windows or more before the detector hears silence;
so does a sentence twice in its first 0.8 s."""


class CallerLevel:
    """The level of one caller, learned from their turns."""

    def __init__(self, below_db: float | None) -> None:
        """Start without a level.

        Args:
            below_db: How far below the caller a sound is somebody else's; ``None`` for never.
        """
        self._below_db = below_db
        self._level: float | None = None
        self._turn: deque[int] = deque(maxlen=LONGEST_TURN)
        self._weak = 0

    def is_somebody_else(self, peak: int, in_voice: bool) -> bool:
        """Whether a window is too weak to be the caller's.

        Args:
            peak: The highest sample of it and of the windows before it that make a syllable.
            in_voice: Whether a voice continues, which may fade.
        """
        if self._level is None or self._below_db is None:
            return False
        below_db = self._below_db + (KEEPS_OPEN_DB if in_voice else 0.0)
        return peak < self._level * 10 ** (-below_db / 20)

    def loud(self, least: int = LEAST_WINDOWS) -> float | None:
        """Return the peak of the loud windows of this turn; None before there are enough.

        Args:
            least: How many voiced windows are enough.
        """
        windows = len(self._turn)  # _quantile() without the call: twice for each window
        return float(sorted(self._turn)[int(LOUD * (windows - 1))]) if windows >= least else None

    def hear_weak(self) -> None:
        """Count a window that would be speech if it were louder."""
        self._weak += 1
        if self._weak >= LOST_WINDOWS:
            self._level, self._weak = None, 0

    def hear_voice(self, peak: int) -> None:
        """Learn from a voiced window that may be the caller's.

        Args:
            peak: Its highest sample.
        """
        self._turn.append(peak)
        self._weak = 0

    def turn_ended(self) -> None:
        """Learn from a turn with words; it counts half, so that callers may move."""
        if len(self._turn) < LEAST_WINDOWS:
            return
        usual = _quantile(self._turn, USUAL)
        level = min(_quantile(self._turn, LOUD), usual * 10 ** (ABOVE_USUAL_DB / 20))
        # The mean of two levels in dB.
        self._level = level if self._level is None else (self._level * level) ** 0.5

    def settled(self) -> None:
        """Forget the current turn: it was decided."""
        self._turn.clear()


SURE = 0.9
"""From this probability on, the voice detector is sure that a voice goes on: it stays so through
the closures of speech, and not behind the end of a throat sound."""


class FaintestVoice:
    """The level below which one sound of a voice is over."""

    def __init__(self, quietest: float) -> None:
        """Start with a voice that begins.

        Args:
            quietest: The lowest peak of a window of voice.
        """
        self._quietest = quietest
        self._near = quietest * 10 ** (NEAR_LIMIT_DB / 20)
        self._most = 0  # the highest peak of the voice

    def is_below(self, peak: int, loudest: int, voiced: float) -> bool:
        """Return whether a window of a voice that continues is too faint to be voice.

        A loud voice that falls below the limit is over, sooner than the detector knows. In a weak
        one that may be a closure, if the detector is sure of the voice, so a whole syllable has to
        be below it.

        Args:
            peak: The highest sample of the window.
            loudest: The same of it and of the windows before it that make a syllable.
            voiced: The probability that it is voice.
        """
        self._most = max(loudest, self._most)
        may_close = self._most < self._near and voiced >= SURE
        return (loudest if may_close else peak) < self._quietest

    def fades(self, peak: int) -> bool:
        """Return whether a window is so weak beside the loudest one that the voice may be over.

        Of a weak voice that is not known: its soft sounds are lost in the noise.

        Args:
            peak: The highest sample of the window.
        """
        return self._most >= self._near and peak < self._most * 10 ** (-FADES_DB / 20)


MISSED_LEAST_WINDOWS = 5
"""Voiced windows that show how loud a caller is whose words the detector may miss: one syllable."""

AS_LOUD_DB = 10.0
"""A sound at most this much weaker than the loud moments of the turn may be a missed word."""

WORD_S = 0.128
"""How long such a sound must last, in seconds: a knock or a key is shorter."""

LONGEST_WORD_S = 1.0
"""How long it counts, in seconds: a machine that is switched on does not keep a turn open."""

QUIET_LINE_DB = 18.0
"""How far below the loud moments the quietest ones must be: in babble or a kitchen, the loud sounds
are not the caller's alone."""


class MissedWords:
    """Finds the words of a turn that the voice detector takes for no voice.

    Silero VAD misses some words that are as loud as the speaker's others: 15 of 840 digits, most of
    one man.  With the pauses around it, a missed digit makes a silence of more than a second.
    """

    def __init__(self, window_s: float) -> None:
        """Start with a turn.

        Args:
            window_s: Length of a window, in seconds.
        """
        self._least = max(1, round(WORD_S / window_s))
        self._most = max(1, round(LONGEST_WORD_S / window_s))
        self._lasts = self._missed = 0  # loud windows in a row, and those without voice

    def hear(self, peak: int, voiced: bool, loud: float | None, quietest: float) -> bool:
        """Return whether a window belongs to a word, missed or not.

        Args:
            peak: Its highest sample.
            voiced: Whether the detector takes it for voice.
            loud: The peak of the loud moments of this turn; None if unknown.
            quietest: The same of the quietest moments of the last seconds.
        """
        is_clear = loud is not None and quietest < loud * 10 ** (-QUIET_LINE_DB / 20)
        is_loud = loud is not None and peak >= loud * 10 ** (-AS_LOUD_DB / 20)
        self._lasts = self._lasts + 1 if is_clear and is_loud else 0
        self._missed = self._missed + 1 if self._lasts and not voiced else 0
        return voiced or (self._lasts >= self._least and self._missed <= self._most)


def _quantile(peaks: Iterable[int], share: float) -> float:
    ordered = sorted(peaks)
    return float(ordered[int(share * (len(ordered) - 1))])
