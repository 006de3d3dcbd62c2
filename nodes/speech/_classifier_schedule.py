"""Asks detectors what a sound is that has just begun, each at its time after the onset."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import structlog

from bargein.bridge.events import VoiceHint
from bargein.routes.containment import CONTAINED

from ._engine_checks import no_probability
from ._protocols import SoundOfVoice

log = structlog.get_logger()

LIKELY = 0.5
"""From this probability on a detector has found what it listens for."""

AGREED = 0.7
"""The same for detectors of one kind that are asked one after the other: so sure has to be each of
them.  At 0.5 two looks for assent agree on 6 in 100 beginnings of people's sentences, and on 9 in
kitchen noise; at 0.7 on 0 and on 3 (64 each)."""

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
        self,
        sounds: Sequence[SoundOfVoice],
        window_s: float,
        recent: Callable[[], bytes],
        report_error: Callable[[Exception], None],
    ) -> None:
        """Begin without a sound.

        Args:
            sounds: The detectors.
            window_s: Length of a window.
            recent: Returns the last 0.48 s of the microphone.
            report_error: Called with what a detector raises; the voice is heard without its hint.
        """
        found = [(max(1, round(sound.after_s / window_s)), sound) for sound in sounds]
        self._due = sorted(found, key=lambda each: each[0])
        self._last = max((windows for windows, _ in self._due), default=0)
        self._first = min((windows for windows, _ in self._due), default=0)
        self._longest_doubt = round(LONGEST_DOUBT_S / window_s)
        self._longest_break = round(CLOSURE_S / window_s)
        self._recent = recent
        self._report_error = report_error
        self._told: set[tuple[str, type]] = set()
        self._age = self._last  # windows since the onset; nothing is to be looked at
        self._speechlike = _Run(self._longest_break)  # whoever's voice it is
        self._soft, self._sudden = _Run(self._longest_break), _Run(self._longest_break)
        self._beginning: dict[int, bytes] = {}  # of that, what detectors get
        self._last_of = {sound.kind: sound for _, sound in self._due}
        kinds = [sound.kind for _, sound in self._due]
        self._enough = {kind: LIKELY if kinds.count(kind) == 1 else AGREED for kind in kinds}
        self._least: dict[str, float] = {}  # of each kind, by the looks so far
        self._found = 0.0  # how surely
        self._began_as_noise = False  # to the voice detector, that is

    def hear(
        self,
        speechlike: bool,
        onset_windows: int,
        in_voice: bool,
        *,
        soft: bool = False,
        sudden: bool = False,
    ) -> list[VoiceHint]:
        """Take in the newest window, and return what detectors say whose time has come.

        Args:
            speechlike: Whether it sounds like speech, be it the caller's or the agent's echo.
            onset_windows: So many of them begin a voice.
            in_voice: Whether a voice of the caller goes on; nobody asks about one that is over.
            soft: Whether it may be the caller's speech, though too little of it to begin a voice.
            sudden: Whether it is much louder than it was a moment ago, whatever it sounds like.
        """
        if soft or self._soft.windows:  # what is nothing, and was nothing, changes nothing
            self._soft.hear(soft)
        if sudden or self._sudden.windows:
            self._sudden.hear(sudden)
        if speechlike or self._speechlike.windows:
            # What was the caller's was no doubtful sound: a closure in it ends it.
            self._speechlike.hear(speechlike, may_break=not in_voice)
        since = self._speechlike.windows - onset_windows
        for windows, _ in self._due:
            if windows == since:
                self._beginning[windows] = self._recent()
        self._age += 1
        if not in_voice or self._age > self._last:
            return []
        due = [sound for windows, sound in self._due if windows == self._age]
        return self._ask([(sound, self._recent()) for sound in due])

    def voice_began(self, onset_windows: int) -> list[VoiceHint]:
        """Start on a new voice, and return what is known of it already.

        The "k" of "okay" is a silence: a sound that is still to be looked at goes on behind it, and
        so does one whose "o" was too soft to begin a voice, or was taken for the agent's echo, or
        was nothing to the voice detector but a sudden noise.  A voice that was taken for an echo
        for a moment began a moment ago.

        Args:
            onset_windows: So many windows ago.
        """
        if self._age < self._last:
            return []
        since = self._speechlike.windows - onset_windows
        doubted = since if 0 <= since < self._longest_doubt else 0
        began = min(self._soft.windows - onset_windows, self._first)
        syllable = self._syllable(onset_windows)
        self._age = max(doubted, began, syllable)
        self._began_as_noise = syllable > max(doubted, began)
        self._found, self._least = 0.0, {}
        return self._ask(
            [
                (sound, self._beginning[at] if at <= doubted else self._recent())
                for at, sound in self._due
                if at <= self._age
            ]
        )

    def _syllable(self, onset_windows: int) -> int:
        """Return how long ago a syllable began that a closure parts from the voice; 0 for none."""
        since = self._sudden.windows - onset_windows
        return since if self._sudden.has_broken and since <= self._first else 0

    def _ask(self, questions: Sequence[tuple[SoundOfVoice, bytes]]) -> list[VoiceHint]:
        """Ask detectors; those of a kind have to agree, so the least sure one counts."""
        hints = []
        for sound, pcm in questions:
            probability = self._probability(sound, pcm)
            if probability is None:
                continue
            agreed = min(probability, self._least.get(sound.kind, 1.0))
            self._least[sound.kind] = agreed
            if sound is not self._last_of[sound.kind]:
                continue
            if agreed >= max(self._enough[sound.kind], self._found):
                self._found = agreed
                hints.append(VoiceHint(kind=sound.kind, probability=round(agreed, 3)))
            elif self._is_surely_speech(sound, probability):
                hints.append(VoiceHint(kind="speech", probability=round(1 - probability, 3)))
        return hints

    def _probability(self, sound: SoundOfVoice, pcm: bytes) -> float | None:
        """Return what a detector says; ``None`` if it fails, which costs no more than its hint."""
        name = type(sound).__name__
        try:
            with CONTAINED:
                probability = sound.probability(pcm)
                if not probability >= 0.0:
                    raise no_probability((sound, probability))
        except Exception as error:
            self._report_error(error)
            if (name, type(error)) not in self._told:  # once a call: it is asked at each voice
                self._told.add((name, type(error)))
                log.exception("sound_of_voice_failed", detector=name, error=type(error).__name__)
            return None
        return probability

    def _is_surely_speech(self, sound: SoundOfVoice, probability: float) -> bool:
        """Return whether the last look, which found nothing, tells that it is speech."""
        if self._found or self._began_as_noise:
            return False  # it may be one: a cough is no assent, and no speech either
        return sound.kind == "acknowledgement" and probability < SURELY_NOT


class _Run:
    """How long something has gone on, over breaks that are no longer than a closure."""

    def __init__(self, longest_break: int) -> None:
        self.windows = 0
        """Since it began, its breaks among them; 0 if nothing goes on."""
        self.has_broken = False
        """Whether there was a break in it."""
        self._longest_break = longest_break
        self._break = 0

    def hear(self, goes_on: bool, *, may_break: bool = True) -> None:
        """Take in the newest window."""
        self._break = 0 if goes_on else self._break + 1
        if self._break > (self._longest_break if may_break else 0):
            self.windows, self.has_broken = 0, False
        elif goes_on or self.windows:
            self.windows += 1
            self.has_broken = self.has_broken or not goes_on
