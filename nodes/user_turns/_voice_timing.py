"""The timing of the caller's voice in one sound or turn."""

from __future__ import annotations

from dataclasses import dataclass

from ._transcript_merge import MergedTranscript


@dataclass(slots=True)
class VoiceTiming:
    """Whether a voice continues, and since when."""

    began_s: float
    """When this stretch of voice began."""
    is_on: bool
    since_s: float
    """When its current state, voiced or silent, began."""
    sign_s: float
    """When anything was last heard of it: voice, words, or a hint."""
    was_heard: bool = False
    """Whether a start or a stop was reported; otherwise there are only words."""
    was_started: bool = False
    """Whether a start was reported."""
    before_s: float = 0.0
    """How long it was voiced before this stretch, in seconds."""
    owes_stop: bool = False
    """Whether it counts as stopped without a reported stop."""

    def notice(self, now_s: float) -> None:
        """Record a sign of it: voice, words, or a hint."""
        self.sign_s = now_s

    def notice_words(self, now_s: float) -> None:
        """Record words of it; without a voice, only they show when it stopped."""
        self.sign_s = now_s
        if not self.was_heard:
            self.since_s = now_s

    def start_stretch(self, now_s: float) -> None:
        """Start a new stretch of voice after a long break."""
        self.before_s += self.voiced_s(now_s)
        self.began_s = now_s

    def start_late(self, now_s: float) -> None:
        """Record a start that came after its stop."""
        self.was_heard = self.was_started = True
        self.stop(now_s)

    def stop_without_start(self, now_s: float) -> None:
        """Record a stop whose start has not come yet."""
        self.stop(now_s)
        self.was_heard = True

    def stop(self, now_s: float) -> None:
        """Record that it stopped."""
        self.is_on = self.owes_stop = False
        self.since_s = self.sign_s = now_s

    def lose(self, now_s: float) -> None:
        """Count it as stopped without a reported stop."""
        self.stop(now_s)
        self.owes_stop = True

    def start(self, now_s: float) -> None:
        """Record that it continues."""
        self.is_on = self.was_heard = self.was_started = True
        self.owes_stop = False
        self.since_s = self.sign_s = now_s

    def voiced_s(self, now_s: float) -> float:
        """Return how long this stretch was voiced, in seconds."""
        return (now_s if self.is_on else self.since_s) - self.began_s

    def silent_s(self, now_s: float) -> float:
        """Return how long it has been silent, in seconds."""
        return 0.0 if self.is_on else now_s - self.since_s


def await_words(voice: VoiceTiming, transcript: MergedTranscript) -> None:
    """Expect further words if a voice continues although its end was forced."""
    if voice.is_on:
        transcript.sound_began()
