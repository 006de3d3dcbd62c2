"""The state of the caller's current turn."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._transcript_merge import MergedTranscript
from ._voice_timing import VoiceTiming, await_words


@dataclass(slots=True)
class UserTurn:
    """The caller's current turn."""

    began_s: float
    voice: VoiceTiming
    transcript: MergedTranscript
    before: str = ""
    """Kept words from before the turn."""
    score: float | None = None
    is_over: bool = False
    interrupted: bool = False
    """Whether it interrupted the agent."""
    pauses_s: list[float] = field(default_factory=list)
    """Its silences that did not end it, in seconds."""
    published_text: str = ""
    """The words that were last published."""
    likely_over_text: str = ""
    """The words with which ``TurnLikelyOver`` was published; empty if it was not."""
    forced_s: float | None = None
    """When its end was forced; None if it was not."""

    def rate(self, score: float, *, is_over: bool) -> None:
        """Record how complete it sounds, and whether an ear has decided that it is over."""
        self.score, self.is_over = score, self.is_over or is_over

    def force_end(self, now_s: float) -> None:
        """Record that it is to end as soon as its words are known."""
        self.forced_s, self.is_over = now_s, False
        await_words(self.voice, self.transcript)

    def add_pause(self, pause_s: float) -> None:
        """Record a silence that did not end it."""
        self.pauses_s.append(pause_s)

    def resume(self, now_s: float) -> float | None:
        """Continue after a pause.

        Returns:
            The length of the pause; None if no voice had begun before.
        """
        pause_s = None
        if self.voice.was_started:
            pause_s = now_s - self.voice.since_s
            self.add_pause(pause_s)
            self.transcript.sound_began()
        self.likely_over_text, self.score, self.is_over = "", None, False
        self.voice.start(now_s)
        return pause_s

    def mark_published(self) -> None:
        """Record that its words so far were published."""
        self.published_text = self.text

    def mark_likely_over(self) -> None:
        """Record that ``TurnLikelyOver`` was published with its words so far."""
        self.likely_over_text = self.text

    @property
    def text(self) -> str:
        """All its words so far."""
        return f"{self.before} {self.transcript.text}".strip()
