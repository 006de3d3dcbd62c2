"""Judges whether a window of sound is the caller's voice.

Three kinds of sound are not: the agent's echo, a voice much weaker than the caller's last turns
(`CallerLevel`), and a sound no louder than constant babble (`BackgroundLevel`).  In a turn, a sound
as loud as the caller is voice, even if the detector takes it for none (`MissedWords`).  Of what is
left, it is known whether it may be babble that was there before the caller spoke (`BabbleLevel`).
"""

from __future__ import annotations

from array import array
from collections import deque
from typing import NamedTuple

from ._babble_level import BabbleLevel
from ._background_level import BackgroundLevel
from ._distant_voices import MISSED_LEAST_WINDOWS, CallerLevel, FaintestVoice, MissedWords
from ._listening_settings import ListeningSettings

ECHO_ABOVE = 0.5
"""From this probability on, a window is the agent's own voice."""

PERHAPS_ABOVE = 0.2
"""From this probability on, a window may be the soft beginning of a word: Silero VAD gives the "o"
of some "okay"s no more."""

SUDDEN = 8.0
"""Something may have begun in a window whose peak is so many times the lowest of the last
`FLOOR_OVER_S`, even if Silero VAD does not take it for speech, as with a few "o"s."""

SYLLABLE_S = 0.2
"""The length of a syllable, in seconds; a peak `FALLEN` times lower than its own is a closure."""

CLOSURE_S = 0.128
"""A window counts as loud as the loudest of this time, in seconds, to include a word's closures."""

FALLEN = 3.0

FLOOR_OVER_S = 1.0
"""How long the quietest window counts as the noise floor, in seconds: people pause more often."""


class JudgedWindow(NamedTuple):
    """A window of sound, and whose it is."""

    peak: int
    """The largest sample, from 0 to 32768."""
    probability: float
    """That of a voice; 0 for a sound that is not the caller's."""
    is_voice: bool
    is_echo: bool
    is_soft: bool
    """Whether it may be the soft beginning of a word; only outside of a voice."""
    is_sudden: bool
    """Whether it is much louder than what was before; only outside of a voice."""
    is_fading: bool
    """Whether it is much weaker than the loudest of this voice."""


class CallerVoice:
    """What a call has taught about its caller's voice, and whether a window is that voice.

    Attributes:
        level: How loud the caller is.
    """

    def __init__(self, settings: ListeningSettings, window_s: float) -> None:
        """Know nothing yet.

        Args:
            settings: What counts as voice.
            window_s: The length of a window, in seconds.
        """
        self._settings = settings
        self._window_s = window_s
        self._quietest = 32768 * 10 ** (settings.quietest_peak_dbfs / 20)
        self._faintest = FaintestVoice(self._quietest)
        self.level = CallerLevel(settings.below_caller_db)
        self._background = BackgroundLevel(settings.above_background_db, window_s, self._quietest)
        self._babble = BabbleLevel(window_s, self._quietest)
        self._missed: MissedWords | None = None  # while the caller has the turn
        self._syllable: deque[int] = deque(maxlen=self._windows(CLOSURE_S))
        self._peaks: deque[int] = deque(maxlen=self._windows(FLOOR_OVER_S))
        self._syllable_windows = self._windows(SYLLABLE_S)

    def started(self) -> None:
        """Learn anew how faint the voice that begins may become."""
        self._faintest = FaintestVoice(self._quietest)

    def turn_began(self) -> None:
        """Take sounds as loud as the caller for words until the turn ends."""
        self._missed = MissedWords(self._window_s)

    def turn_ended(self) -> None:
        """Learn how loud the caller is; only the detector finds voices until the next turn."""
        self._missed = None
        self.level.turn_ended()

    def turn_settled(self) -> None:
        """Forget the turn."""
        self._missed = None
        self.level.settled()

    def nothing_was_sent(self) -> None:
        """Take the line for quiet: some telephone lines and clients send nothing in silence."""
        self._babble.line_was_quiet()

    @property
    def is_masked(self) -> bool:
        """Whether background nearly as loud as the caller hides the ends of their words."""
        return self._background.is_near(self.level.loud())

    @property
    def may_be_babble(self) -> bool:
        """Whether the voice that is heard may be one that was there before the caller spoke."""
        return self._settings.above_background_db is not None and self._babble.may_be_alone

    @property
    def is_in_babble(self) -> bool:
        """Whether voices that were there before the caller spoke mix with theirs."""
        return self._settings.above_background_db is not None and self._babble.is_babble

    def judge(
        self, window: bytes, probability: float, echo: float, *, in_voice: bool, silent_windows: int
    ) -> JudgedWindow:
        """Return whose sound a window is; call it once for each window, in order.

        Args:
            window: PCM16 little-endian mono.
            probability: What the voice detector says, from 0 to 1.
            echo: The probability that it is the agent's echo, from 0 to 1.
            in_voice: Whether a voice has begun and not stopped.
            silent_windows: How many windows in a row were silent.
        """
        samples = array("h", window)
        peak = max(max(samples), -min(samples))
        self._syllable.append(peak)
        loudest = max(self._syllable)
        is_echo = echo >= ECHO_ABOVE
        is_weak = self.level.is_somebody_else(loudest, in_voice)
        if is_weak and probability >= self._settings.speech_above and not is_echo:
            self.level.hear_weak()
        is_faint, is_fading = peak < self._quietest, False
        if in_voice:
            is_faint = self._faintest.is_below(peak, loudest, probability)
            is_fading = self._faintest.fades(peak)
        is_background, loud = False, self.level.loud()
        if not is_echo:
            self._babble.hear(peak, loudest, voiced=probability >= self._settings.speech_above)
            silent_s = 0.0 if in_voice else silent_windows * self._window_s
            is_background = self._background.hear(
                peak, loudest, loud, silent_s,
                voiced=probability >= self._settings.speech_above,
            )  # fmt: skip
            if is_background and loud is not None:
                is_background = not self._babble.is_below(loudest)
            if is_background and self._missed is None:
                is_background = not self._babble.goes_on(loudest)
        if is_background or is_faint or is_weak:
            probability = 0.0
        is_voice = probability >= self._settings.speech_above
        if self._missed is not None and not is_echo:
            if loud is None:
                loud = self.level.loud(MISSED_LEAST_WINDOWS)
            word = 0 if is_background else peak  # babble is as loud as some words
            is_voice = self._missed.hear(word, is_voice, loud, self._background.quietest)
        is_new = not in_voice and not is_echo
        is_soft = is_new and probability >= PERHAPS_ABOVE
        is_sudden = is_new and self._is_sudden(peak)
        self._peaks.append(peak)
        return JudgedWindow(peak, probability, is_voice, is_echo, is_soft, is_sudden, is_fading)

    def _windows(self, seconds: float) -> int:
        return max(1, round(seconds / self._window_s))  # a detector's frame may be longer

    def _is_sudden(self, peak: int) -> bool:
        peaks = [*self._peaks]
        syllable = peaks[-self._syllable_windows :]
        floor, fallen = min(peaks, default=peak), max(syllable, default=0) / FALLEN
        return peak >= max(self._quietest, SUDDEN * floor, fallen)
