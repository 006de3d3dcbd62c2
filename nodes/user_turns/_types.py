"""What turn taking remembers of the sound, or the turn, that it is following."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bargein.routes import Event

from ._sound import CLOSE_S, Hint
from ._transcript_merge import Transcript

Values = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Hold:
    """The agent's speech is to stand still."""


@dataclass(frozen=True, slots=True)
class Release:
    """The agent's speech is to go on."""


@dataclass(frozen=True, slots=True)
class Publish:
    """An event is to be published."""

    event: Event
    words: str = ""
    """For the log line of a decision: what was heard.  Never part of the event."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A strategy raised, and the default one was asked instead."""

    error: Exception


Act = Hold | Release | Publish | Failed


@dataclass(frozen=True, slots=True)
class Look:
    """Nothing was heard: time has passed, or the agent has changed."""


@dataclass(frozen=True, slots=True)
class TalkKey:
    """The key that the caller talks by was pressed or released."""

    down: bool


@dataclass(frozen=True, slots=True)
class MicrophoneLost:
    """No audio arrives any more."""


@dataclass(slots=True)
class Voice:
    """Whether a voice goes on, and since when."""

    began_s: float
    """When this stretch of voice began."""
    is_on: bool
    since_s: float
    """When it began to go on, or stopped."""
    sign_s: float
    """When anything was last heard of it: voice, words, or a hint."""
    was_heard: bool = False
    """Whether a start or a stop was ever told; else there are words only."""
    was_started: bool = False
    """Whether a start was told."""
    before_s: float = 0.0
    """For how long it was voiced before this stretch."""
    owes_stop: bool = False
    """Whether it counts as stopped, but its stop was not told."""

    def notice(self, now_s: float) -> None:
        """Record a sign of it: voice, words, or a hint."""
        self.sign_s = now_s

    def notice_words(self, now_s: float) -> None:
        """Record words of it; where no voice was heard they are all that tells when it stopped."""
        self.sign_s = now_s
        if not self.was_heard:
            self.since_s = now_s

    def begin_stretch(self, now_s: float) -> None:
        """Begin a new stretch of voice, after a long break."""
        self.before_s += self.voiced_s(now_s)
        self.began_s = now_s

    def start_late(self, now_s: float) -> None:
        """Record a start that comes after its stop."""
        self.was_heard = self.was_started = True
        self.stop(now_s)

    def stop_without_start(self, now_s: float) -> None:
        """Record a stop whose start was not told yet."""
        self.stop(now_s)
        self.was_heard = True

    def stop(self, now_s: float) -> None:
        """Record that it stopped."""
        self.is_on = self.owes_stop = False
        self.since_s = self.sign_s = now_s

    def lose(self, now_s: float) -> None:
        """Count it as stopped, though nobody said so."""
        self.stop(now_s)
        self.owes_stop = True

    def start(self, now_s: float) -> None:
        """Record that it goes on."""
        self.is_on = self.was_heard = self.was_started = True
        self.owes_stop = False
        self.since_s = self.sign_s = now_s

    def voiced_s(self, now_s: float) -> float:
        """Return for how long this stretch was voiced."""
        return (now_s if self.is_on else self.since_s) - self.began_s

    def silent_s(self, now_s: float) -> float:
        """Return for how long it has been silent."""
        return 0.0 if self.is_on else now_s - self.since_s


def await_words(voice: Voice, transcript: Transcript) -> None:
    """Expect further words where a voice goes on whose end was forced."""
    if voice.is_on:
        transcript.sound_began()


@dataclass(slots=True)
class UndecidedSound:
    """A sound that is no turn yet."""

    voice: Voice
    transcript: Transcript = field(default_factory=Transcript)
    hint: Hint | None = None
    hinted_s: float = 0.0
    """When that came."""
    score: float | None = None
    """How complete it sounds to an end-of-turn model; None if none has told."""
    is_over: bool = False
    """Whether an ear with turns of its own has decided that it is over."""
    blocked: str = ""
    """The rule that keeps it from interrupting; empty if none does."""
    agent_was_busy: bool = False
    """Whether the agent said or did something while it was heard."""
    saying: str = ""
    """What the agent said around it."""
    held_at_s: float | None = None
    """Since when the agent's speech is held for it."""
    let_go: str = ""
    """Why the agent's speech goes on again though it is not decided; empty if it does not."""
    forced_s: float | None = None
    """When its end was forced; None if it was not."""

    def note_agent(self, saying: str) -> None:
        """Record that the agent is busy, and what it says; nothing new where that is empty."""
        self.agent_was_busy = True
        self.saying = saying or self.saying

    def block(self, rule: str) -> None:
        """Let a rule keep it from interrupting; an empty one lets it interrupt again."""
        self.blocked = rule

    def rate(self, score: float, *, is_over: bool) -> None:
        """Record how complete it sounds, and whether an ear has decided that it is over."""
        self.score, self.is_over = score, self.is_over or is_over

    def force_end(self, now_s: float) -> None:
        """Record that it is to end as soon as its words are known."""
        self.forced_s = now_s
        await_words(self.voice, self.transcript)

    def take_hint(self, hint: Hint, now_s: float) -> None:
        """Record what it seems to be by its sound."""
        self.hint, self.hinted_s = hint, now_s
        self.voice.notice(now_s)
        if hint.kind == "speech" and self.let_go == "acknowledgement":
            self.let_go = ""  # what it seemed to be was another sound, or a mistake

    def go_on(self, now_s: float, new_after_s: float) -> None:
        """Follow its voice after a break; after a long one it is a new sound to be decided.

        Args:
            now_s: When the voice began again.
            new_after_s: From how long a break on the sound is a new one.
        """
        self.score, self.is_over = None, False
        if self.voice.was_started:
            self.transcript.sound_began()
        if self.voice.silent_s(now_s) >= new_after_s - CLOSE_S:
            self.voice.begin_stretch(now_s)
            self.blocked = ""
            if self.hint is None or self.hint.kind != "acknowledgement":
                self.hint, self.let_go = None, ""  # else it goes on: "uh-huh", "okay, right"
        elif self.let_go == "silence":
            self.let_go = ""  # it was none
        self.voice.start(now_s)

    def hold_agent(self, now_s: float) -> bool:
        """Record that the agent's speech is held for it; return whether it was not yet."""
        is_new = self.held_at_s is None
        self.held_at_s = now_s if is_new else self.held_at_s
        return is_new

    def release_agent(self) -> bool:
        """Record that the agent's speech is held for it no more; return whether it was."""
        was_held = self.held_at_s is not None
        self.held_at_s = None
        return was_held

    def let_agent_go_on(self, why: str) -> bool:
        """Record why the agent's speech goes on for now; return whether that is new."""
        is_new = self.let_go != why
        self.let_go = why
        return is_new


@dataclass(slots=True)
class UserTurn:
    """A turn of the caller's that is not over."""

    began_s: float
    voice: Voice
    transcript: Transcript
    before: str = ""
    """What was said before it, and kept until now."""
    score: float | None = None
    is_over: bool = False
    interrupted: bool = False
    """Whether the agent was cut for it."""
    pauses_s: list[float] = field(default_factory=list)
    """Its silences that were no end, in seconds."""
    told: str = ""
    """The words that were told last."""
    told_likely: str = ""
    """The words with which it was told that it is likely over; empty if it was not."""
    forced_s: float | None = None
    """When its end was forced; None if it was not."""

    def rate(self, score: float, *, is_over: bool) -> None:
        """Record how complete it sounds, and whether an ear has decided that it is over."""
        self.score, self.is_over = score, self.is_over or is_over

    def force_end(self, now_s: float) -> None:
        """Record that it is to end as soon as its words are known."""
        self.forced_s, self.is_over = now_s, False
        await_words(self.voice, self.transcript)

    def go_on(self, now_s: float) -> float | None:
        """Follow its voice after a pause.

        Returns:
            How long the pause was; None where no voice had begun before.
        """
        pause_s = None
        if self.voice.was_started:
            pause_s = now_s - self.voice.since_s
            self.pauses_s.append(pause_s)
            self.transcript.sound_began()
        self.told_likely, self.score, self.is_over = "", None, False
        self.voice.start(now_s)
        return pause_s

    def mark_told(self) -> None:
        """Record that its words so far were told."""
        self.told = self.text

    def mark_likely_over(self) -> None:
        """Record that it was told to be likely over, with its words so far."""
        self.told_likely = self.text

    @property
    def text(self) -> str:
        """All its words so far."""
        return f"{self.before} {self.transcript.text}".strip()
