"""Asks detectors what a sound is that has just begun, each at its time after the onset."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.events import VoiceHint

from ._protocols import SoundOfVoice

LIKELY = 0.5
"""From this probability on a detector has found what it listens for."""

DENIED = 0.2
"""Below it a later detector of the same kind takes back what an earlier one found."""

SURELY_NOT = 0.1
"""Below it the last detector tells that it is speech, though nothing else was found: so little has
it for 77 of 100 beginnings of sentences, and for one short word of assent in 40."""

LONGEST_DOUBT_S = 0.64
"""For how long a caller may be taken for the agent's echo; what sounds like speech for longer
before a voice begins was something else."""

CLOSURE_S = 0.1
"""How long the closure of a stop lasts at most, such as that of the "k" in "okay"."""


class Looks:
    """When which detector is asked about the sounds of one call."""

    def __init__(
        self, sounds: Sequence[SoundOfVoice], window_s: float, recent: Callable[[], bytes]
    ) -> None:
        """Begin without a sound.

        Args:
            sounds: The detectors.
            window_s: Length of a window.
            recent: Returns the last 0.35 s of the microphone.
        """
        found = [(max(1, round(sound.after_s / window_s)), sound) for sound in sounds]
        self._due = sorted(found, key=lambda each: each[0])
        self._last = max((windows for windows, _ in self._due), default=0)
        self._first = min((windows for windows, _ in self._due), default=0)
        self._longest_doubt = round(LONGEST_DOUBT_S / window_s)
        self._longest_break = round(CLOSURE_S / window_s)
        self._recent = recent
        self._age = self._last  # windows since the onset; nothing is to be looked at
        self._speechlike = 0  # windows in a row, whoever's voice it is
        self._soft = self._break = 0  # windows since something soft began, and last was heard
        self._beginning: dict[int, bytes] = {}  # of that, what detectors get
        self._found, self._kind = 0.0, ""  # how surely, and what

    def hear(
        self, speechlike: bool, onset_windows: int, in_voice: bool, *, soft: bool = False
    ) -> list[VoiceHint]:
        """Take in the newest window, and return what detectors say whose time has come.

        Args:
            speechlike: Whether it sounds like speech, be it the caller's or the agent's echo.
            onset_windows: So many of them begin a voice.
            in_voice: Whether a voice of the caller goes on; nobody asks about one that is over.
            soft: Whether it may be the caller's speech, though too little of it to begin a voice.
        """
        self._hear_soft(soft)
        self._speechlike = self._speechlike + 1 if speechlike else 0
        since = self._speechlike - onset_windows
        for windows, _ in self._due:
            if windows == since:
                self._beginning[windows] = self._recent()
        self._age += 1
        due = [sound for windows, sound in self._due if windows == self._age]
        return self._ask([(sound, self._recent()) for sound in due if in_voice])

    def begin(self, onset_windows: int) -> list[VoiceHint]:
        """Take note that a voice begins, and return what is known of it already.

        The "k" of "okay" is a silence: a sound that is still to be looked at goes on behind it, and
        so does one whose "o" was too soft to begin a voice.  A voice that was taken for the agent's
        echo for a moment began a moment ago.

        Args:
            onset_windows: So many windows ago.
        """
        if self._age < self._last:
            return []
        since = self._speechlike - onset_windows
        doubted = since if 0 <= since < self._longest_doubt else 0
        self._age = max(doubted, min(self._soft - onset_windows, self._first))
        self._found = 0.0
        return self._ask(
            [
                (sound, self._beginning[at] if at <= doubted else self._recent())
                for at, sound in self._due
                if at <= self._age
            ]
        )

    def _hear_soft(self, soft: bool) -> None:
        self._break = 0 if soft else self._break + 1
        if self._break > self._longest_break:
            self._soft = 0
        elif soft or self._soft:
            self._soft += 1

    def _ask(self, questions: Sequence[tuple[SoundOfVoice, bytes]]) -> list[VoiceHint]:
        hints = []
        for sound, pcm in questions:
            probability = sound.probability(pcm)
            if probability >= max(LIKELY, self._found):
                self._found, self._kind = probability, sound.kind
                hints.append(VoiceHint(kind=sound.kind, probability=round(probability, 3)))
            elif self._denies(sound, probability):
                self._found = 0.0
                hints.append(VoiceHint(kind="speech", probability=round(1 - probability, 3)))
        return hints

    def _denies(self, sound: SoundOfVoice, probability: float) -> bool:
        """Return whether a detector that found nothing tells that it is speech."""
        if self._found:
            return sound.kind == self._kind and probability < DENIED
        is_last = sound is self._due[-1][1]
        return is_last and sound.kind == "acknowledgement" and probability < SURELY_NOT
