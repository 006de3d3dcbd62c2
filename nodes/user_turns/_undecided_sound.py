"""The state of a sound that is not a turn yet."""

from __future__ import annotations

from dataclasses import dataclass, field

from ._hallucinations import CERTAINLY_NOISE
from ._sound_verdict import CLOSE_S, Hint
from ._transcript_merge import MergedTranscript
from ._voice_timing import VoiceTiming, await_words

OVERRUN = "longest_turn_s"
"""Blocks a voice that continues after its turn was ended by force: the agent has to answer, and the
sound may not be a voice at all. Words show that it is one."""

NOISE_AGAIN = 0.8
"""How likely a sound is a noise that follows a certain noise at once: coughs come in bursts. It is
not certain, because people also apologise for them; few words then have to be sure."""


@dataclass(slots=True)
class UndecidedSound:
    """A sound that is no turn yet."""

    voice: VoiceTiming
    transcript: MergedTranscript = field(default_factory=MergedTranscript)
    hint: Hint | None = None
    hinted_s: float = 0.0
    """When the hint came."""
    score: float | None = None
    """How complete it sounds to an end-of-turn model; ``None`` without a score."""
    is_over: bool = False
    """Whether an ear that detects turns has decided that it is over."""
    blocked: str = ""
    """The rule that keeps it from interrupting; empty if none does."""
    agent_was_busy: bool = False
    """Whether the agent said or did something while it was heard."""
    saying: str = ""
    """What the agent said around that time."""
    held_at_s: float | None = None
    """Since when the agent's speech has been held for it; ``None`` if it is not held."""
    let_go: str = ""
    """Why the agent's speech goes on although the sound is undecided; empty if it does not."""
    forced_s: float | None = None
    """When its end was forced; None if it was not."""

    def note_agent(self, saying: str) -> None:
        """Record that the agent is busy, and what it says; an empty text changes nothing."""
        self.agent_was_busy = True
        self.saying = saying or self.saying

    def block(self, rule: str) -> None:
        """Set the rule that keeps it from interrupting; an empty one lets it interrupt again."""
        self.blocked = rule

    def rate(self, score: float, *, is_over: bool) -> None:
        """Record how complete it sounds, and whether an ear has decided that it is over."""
        self.score, self.is_over = score, self.is_over or is_over

    def force_end(self, now_s: float) -> None:
        """Record that it is to end as soon as its words are known."""
        self.forced_s = now_s
        await_words(self.voice, self.transcript)

    def add_hint(self, hint: Hint, now_s: float) -> None:
        """Record a hint about the sound."""
        self.hint, self.hinted_s = hint, now_s
        self.voice.notice(now_s)
        is_near = hint.kind == "distant" and not hint.probability
        if (hint.kind == "speech" or is_near) and self.let_go in ("acknowledgement", "noise"):
            self.let_go = ""  # the earlier hint was wrong, or about another sound

    def resume(self, now_s: float, new_after_s: float) -> None:
        """Continue after a break; after a long one it is a new sound to decide.

        Args:
            now_s: When the voice began again.
            new_after_s: The least break that makes it a new sound, in seconds.
        """
        self.score, self.is_over = None, False
        if self.voice.was_started:
            self.transcript.sound_began()
        if self.voice.silent_s(now_s) >= new_after_s - CLOSE_S:
            self.voice.start_stretch(now_s)
            self.blocked = ""
            self.hint = self._hint_of_next()
            if self.hint is None:
                self.let_go = ""
        elif self.let_go == "silence":
            self.let_go = ""  # the silence was none
        self.voice.start(now_s)

    def _hint_of_next(self) -> Hint | None:
        """Return what the sound so far says of the one that follows; None for nothing."""
        hint = self.hint
        if hint is None or hint.kind == "acknowledgement":
            return hint  # it goes on: "uh-huh", "okay, right"
        is_burst = hint.kind == "noise" and hint.probability >= CERTAINLY_NOISE
        return Hint("noise", NOISE_AGAIN) if is_burst else None

    def held_s(self, now_s: float) -> float:
        """Return how long the agent's speech has been held for it; 0.0 if it is not held."""
        return 0.0 if self.held_at_s is None else max(0.0, now_s - self.held_at_s)

    def hold_agent(self, now_s: float) -> bool:
        """Record that the agent's speech is held for it; return whether it was not yet."""
        is_new = self.held_at_s is None
        self.held_at_s = now_s if is_new else self.held_at_s
        return is_new

    def release_agent(self) -> bool:
        """Record that the agent's speech is no longer held for it; return whether it was."""
        was_held = self.held_at_s is not None
        self.held_at_s = None
        return was_held

    def let_agent_resume(self, why: str) -> bool:
        """Record why the agent's speech goes on for now; return whether that is new."""
        is_new = self.let_go != why
        self.let_go = why
        return is_new
