"""What turn taking remembers of the sound, or the turn, that it is following."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bargein.routes import Event

from ._sound import Hint
from ._transcript import Transcript

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
    owes_stop: bool = False
    """Whether it counts as stopped, but its stop was not told."""

    def stop(self, now_s: float) -> None:
        """Take note that it stopped."""
        self.is_on = self.owes_stop = False
        self.since_s = self.sign_s = now_s

    def lose(self, now_s: float) -> None:
        """Let it count as stopped, though nobody told so."""
        self.stop(now_s)
        self.owes_stop = True

    def start(self, now_s: float) -> None:
        """Take note that it goes on."""
        self.is_on = self.was_heard = self.was_started = True
        self.owes_stop = False
        self.since_s = self.sign_s = now_s

    def voiced_s(self, now_s: float) -> float:
        """Return for how long this stretch was voiced."""
        return (now_s if self.is_on else self.since_s) - self.began_s

    def silent_s(self, now_s: float) -> float:
        """Return for how long it has been silent."""
        return 0.0 if self.is_on else now_s - self.since_s


@dataclass(slots=True)
class Doubt:
    """A sound that is no turn yet."""

    voice: Voice
    transcript: Transcript = field(default_factory=Transcript)
    hint: Hint | None = None
    hinted_s: float = 0.0
    """When that came."""
    score: float | None = None
    """How complete it sounds to an end-of-turn model; None if none has told."""
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


@dataclass(slots=True)
class UserTurn:
    """A turn of the caller's that is not over."""

    began_s: float
    voice: Voice
    transcript: Transcript
    before: str = ""
    """What was said before it, and kept until now."""
    score: float | None = None
    interrupted: bool = False
    """Whether the agent was cut for it."""
    pauses_s: list[float] = field(default_factory=list)
    """Its silences that were no end, in seconds."""
    told: str = ""
    """The words that were told last."""
    told_likely: str = ""
    """The words with which it was told that it is likely over; empty if it was not."""

    @property
    def text(self) -> str:
        """All its words so far."""
        return f"{self.before} {self.transcript.text}".strip()
