"""Schedules the classifiers of a sound that has just begun, each at its time after the onset."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bargein.bridge.events import VoiceHint
from bargein.routes.error_containment import CONTAINED
from bargein.routes.logs import get_logger

from ._errors import are_probabilities, no_probability
from ._protocols import SoundOfVoice

log = get_logger()

LIKELY = 0.5
"""From this probability on, a detector has found its kind of sound."""

AGREED = 0.7
"""The same if several detectors of one kind are asked in turn: each has to reach it. At 0.5, two
detectors of backchannels agree on 1.7 in 100 beginnings of people's speech; at 0.7, on 0.3."""

SURELY_NOT = 0.1
"""Below this probability of the last detector, the sound is speech if nothing else was found: 71 of
100 beginnings of people's speech are below it, and one short backchannel in 30."""

LONGEST_AS_ECHO_S = 0.64
"""How long a caller may be mistaken for the agent's echo, in seconds; speech-like sound that lasts
longer before a voice begins was something else."""

CLOSURE_S = 0.1
"""The longest closure of a stop consonant, such as the "k" in "okay", in seconds."""


class ClassifierSchedule:
    """Decides when to ask each detector about the sounds of one call."""

    def __init__(
        self,
        sounds: Sequence[SoundOfVoice],
        window_s: float,
        recent: Callable[[], bytes],
        report_error: Callable[[Exception], None],
    ) -> None:
        """Start without a sound.

        Args:
            sounds: The detectors.
            window_s: Length of a window, in seconds.
            recent: Returns the last 0.48 s of the microphone.
            report_error: Called with a detector's error; the voice is then heard without its hint.
        """
        found = [(max(1, round(sound.after_s / window_s)), sound) for sound in sounds]
        self._schedule = sorted(found, key=lambda each: each[0])
        self._last = max((windows for windows, _ in self._schedule), default=0)
        self._first = min((windows for windows, _ in self._schedule), default=0)
        self._longest_as_echo = round(LONGEST_AS_ECHO_S / window_s)
        self._longest_break = round(CLOSURE_S / window_s)
        self._recent = recent
        self._report_error = report_error
        self._reported: set[tuple[str, type]] = set()
        self._age = self._last  # windows since the onset; at this value nothing is pending
        self._speechlike = _Duration(self._longest_break)  # the caller's or the agent's
        self._soft, self._sudden = _Duration(self._longest_break), _Duration(self._longest_break)
        self._beginning: dict[int, bytes] = {}  # the audio for each detector
        self._last_of = {sound.kind: sound for _, sound in self._schedule}
        kinds = [sound.kind for _, sound in self._schedule]
        self._enough = {kind: LIKELY if kinds.count(kind) == 1 else AGREED for kind in kinds}
        self._least: dict[str, float] = {}  # the lowest probability of each kind so far
        self._found = 0.0  # the highest probability
        self._started_as_noise = False  # to the voice detector

    def hear(
        self,
        speechlike: bool,
        onset_windows: int,
        in_voice: bool,
        *,
        soft: bool = False,
        sudden: bool = False,
        echo: bool = False,
    ) -> list[VoiceHint]:
        """Add the newest window; return the hints of detectors that are due.

        Args:
            speechlike: Whether it sounds like speech, the caller's or the agent's echo.
            onset_windows: How many windows begin a voice.
            in_voice: Whether the caller's voice continues. The detectors of a voice that stopped
                before they were due are asked all the same: they learned from short words too.
            soft: Whether it may be the caller's speech, but too weak to begin a voice.
            sudden: Whether it is much louder than a moment ago, whatever it sounds like.
            echo: Whether the agent is heard in it; no detector is asked about that.
        """
        if soft or self._soft.windows:  # nothing changes while there is no sound
            self._soft.hear(soft)
        if sudden or self._sudden.windows:
            self._sudden.hear(sudden)
        if speechlike or self._speechlike.windows:
            # After the caller's voice there was no such sound, so a closure ends this run.
            self._speechlike.hear(speechlike, may_break=not in_voice)
        since = self._speechlike.windows - onset_windows
        for windows, _ in self._schedule:
            if windows == since:
                self._beginning[windows] = self._recent()
        self._age += 1
        if echo or self._age > self._last:
            return []
        due = [sound for windows, sound in self._schedule if windows == self._age]
        return self._ask([(sound, self._recent()) for sound in due])

    def voice_began(self, onset_windows: int) -> list[VoiceHint]:
        """Start a new voice, and return the hints that are already known.

        The "k" of "okay" is a silence, so a sound that is still pending continues after it. So does
        a sound whose "o" was too soft to begin a voice, was taken for the agent's echo, or was only
        a sudden noise to the voice detector. A voice that was briefly taken for an echo began
        earlier.

        Args:
            onset_windows: How many windows ago it began.
        """
        if self._age < self._last:
            return []
        since = self._speechlike.windows - onset_windows
        as_echo = since if 0 <= since < self._longest_as_echo else 0
        began = min(self._soft.windows - onset_windows, self._first)
        syllable = self._syllable(onset_windows)
        self._age = max(as_echo, began, syllable)
        self._started_as_noise = syllable > max(as_echo, began)
        self._found, self._least = 0.0, {}
        return self._ask(
            [
                (sound, self._beginning[at] if at <= as_echo else self._recent())
                for at, sound in self._schedule
                if at <= self._age
            ]
        )

    def _syllable(self, onset_windows: int) -> int:
        """Return how many windows ago a syllable before a closure began; 0 for none."""
        since = self._sudden.windows - onset_windows
        return since if self._sudden.has_broken and since <= self._first else 0

    def _ask(self, questions: Sequence[tuple[SoundOfVoice, bytes]]) -> list[VoiceHint]:
        """Ask detectors; those of a kind have to agree, so the lowest probability counts."""
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
        """Return a detector's probability; ``None`` if it fails, which costs only its hint."""
        name = type(sound).__name__
        try:
            with CONTAINED:
                probability = sound.probability(pcm)
                if not are_probabilities(probability):
                    raise no_probability((sound, probability))
        except Exception as error:
            self._report_error(error)
            if (
                name,
                type(error),
            ) not in self._reported:  # once a call, since each voice repeats it
                self._reported.add((name, type(error)))
                log.exception("sound_of_voice_failed", detector=name, error=type(error).__name__)
            return None
        return probability

    def _is_surely_speech(self, sound: SoundOfVoice, probability: float) -> bool:
        """Return whether the last detector, which found nothing, shows that the sound is speech."""
        if self._found or self._started_as_noise:
            return False  # a cough is not a backchannel, but not speech either
        return sound.kind == "acknowledgement" and probability < SURELY_NOT


class _Duration:
    """How long something has lasted, including breaks no longer than a closure."""

    def __init__(self, longest_break: int) -> None:
        self.windows = 0
        """Windows since it began, breaks included; 0 if there is nothing."""
        self.has_broken = False
        """Whether it had a break."""
        self._longest_break = longest_break
        self._break = 0

    def hear(self, goes_on: bool, *, may_break: bool = True) -> None:
        """Add the newest window."""
        self._break = 0 if goes_on else self._break + 1
        if self._break > (self._longest_break if may_break else 0):
            self.windows, self.has_broken = 0, False
        elif goes_on or self.windows:
            self.windows += 1
            self.has_broken = self.has_broken or not goes_on
