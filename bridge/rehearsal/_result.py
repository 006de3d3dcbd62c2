"""What a rehearsal found: cuts, answers, checks and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from ._recording import Recording
from ._script import Line


@dataclass(frozen=True, slots=True)
class Said:
    """A line as the caller said it.  All times are seconds of the recording."""

    line: Line
    from_s: float
    """The first audible sample."""
    until_s: float
    """The last audible sample."""


@dataclass(frozen=True, slots=True)
class Cut:
    """What an interrupting line did to the agent's speech."""

    said: Said
    """The line."""
    utterance: int | None = None
    """The utterance that was audible when the line began; None: the agent was silent."""
    silent_at_s: float | None = None
    """Its last audible sample at the caller's ear, in seconds of the recording."""
    latency_s: float | None = None
    """From the caller's first audible sample to `silent_at_s`."""
    is_told: bool = False
    """Whether the server told that it was cut."""
    played_s: float = 0.0
    """How much audio of the agent's turn was played."""
    dropped_s: float = 0.0
    """How much audio of the utterance was synthesised and never played."""
    late_s: float = 0.0
    """How much of it was played after a silence, or after the server's word that it was cut."""
    arrived_late_s: float = 0.0
    """How much of it arrived after that word."""
    heard: str = ""
    """What the history says was heard of the agent's turn."""
    unheard: str = ""
    """The rest of what was generated in that turn."""
    transcript: str | None = None
    """What a recogniser makes of the audio that was heard; None: there was none."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the turn taking decided."""

    at_s: float
    """When, in seconds of the recording."""
    about: str
    """``start``, ``end``, ``barge_in`` or ``nudge``."""
    decision: str
    rule: str
    """The setting or strategy that decided."""
    values: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """What the rule compared."""

    @property
    def is_open(self) -> bool:
        """Whether it only says that more must be known."""
        return self.decision == "held"


@dataclass(frozen=True, slots=True)
class Held:
    """A stretch in which the agent's voice stood still, waiting for a decision."""

    from_s: float
    until_s: float
    """When it went on or was cut; the end of the recording if it never was."""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Aside:
    """What a line that was meant to leave the agent speaking did to its speech."""

    said: Said
    utterance: int | None = None
    """The utterance that was audible when it began; None: the agent was silent."""
    is_cut: bool = False
    """Whether the utterance was cut after all."""
    gap_s: float = 0.0
    """The longest stretch for which that utterance stood still because it was held, from this line
    to the next."""
    gap_from_s: float | None = None
    """Where that gap begins; None without one."""
    dry_s: float = 0.0
    """For how long it stood still in that time because the player had nothing to play."""
    dead_air_s: float = 0.0
    """The silence that the caller heard there, from the agent's last audible sample to its next:
    the gap with the pauses of the agent's own that lie beside it."""
    lost_s: float = 0.0
    """How much of what was synthesised was left out, or came twice, from this line to the end of
    the utterance, or to what was played of it."""
    model_calls: int = 0
    """Answers that were generated because of it."""
    turns: int = 0
    """Turns of the caller's that were made of it."""
    decisions: tuple[Decision, ...] = ()
    """What was decided about it, in order: first by its sound, then by its words.  That the agent
    is held until more is known is no decision."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Where the time between a line and its answer went, in seconds.

    They add up to the latency, with one exception: recogniser and end-of-turn model work at the
    same time, so only the longer of the two counts.
    """

    silence_s: float
    """Silence that was waited for, from the caller's last audible sample."""
    transcription_s: float
    """The recogniser's work."""
    end_of_turn_s: float
    """The work of the model that hears whether the turn is over."""
    first_text_s: float
    """From the end of the turn to the answer's first text."""
    first_clause_s: float
    """From there until the first clause was whole and its synthesis began."""
    first_piece_s: float
    """From there to the voice's first piece of audio."""
    playback_s: float
    """From there to the first audible sample: the line, the player's buffer, and the silence with
    which a voice begins."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The agent's answer to a line."""

    said: Said
    latency_s: float | None
    """From the caller's last audible sample to the agent's first; None: no answer was heard."""
    parts: Parts | None = None
    """What that time is made of; None: there was no answer, or the speech does not tell."""


@dataclass(frozen=True, slots=True)
class Check:
    """Something that had to hold."""

    name: str
    ok: bool
    measured: str = ""
    """What was found, for a person."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A call that was made and checked."""

    recording: Recording
    said: tuple[Said, ...]
    """The lines that were said."""
    cuts: tuple[Cut, ...]
    """One for each interrupting line that was said."""
    answers: tuple[Answer, ...]
    """One for each line that was said."""
    history: list[dict[str, Any]]
    """The call's history as plain data; times are seconds of the recording."""
    ended: str
    """Why the call ended."""
    problems: tuple[str, ...] = ()
    """Lines that were never said, and errors that the server told of."""
    transcripts: tuple[tuple[float, str], ...] = ()
    """What the agent understood, final transcripts only, and when."""
    turn_seconds: Mapping[int, float] = field(default_factory=dict)
    """How much audio of each turn was heard."""
    asides: tuple[Aside, ...] = ()
    """One for each line that was said and meant to leave the agent speaking."""
    decisions: tuple[Decision, ...] = ()
    """What the turn taking decided, in order."""
    held: tuple[Held, ...] = ()
    """When the agent's voice stood still."""
    checks: tuple[Check, ...] = ()
    files: tuple[Path, ...] = ()
    """What was written."""

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return all(check.ok for check in self.checks)

    def with_checks(self, checks: Sequence[Check]) -> Rehearsal:
        """Return the same with these checks added."""
        return replace(self, checks=(*self.checks, *checks))


Predicate: TypeAlias = Callable[[Rehearsal], bool | tuple[bool, str]]
"""A check of the user's: says whether it holds, and if it likes what it found."""
