"""What a rehearsal found: cuts, answers, checks and files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from ._recording import Recording
from ._script import ScriptLine


@dataclass(frozen=True, slots=True)
class RecordedLine:
    """A line as the caller said it; times are seconds of the recording."""

    line: ScriptLine
    from_s: float
    """When its first audible sample sounded."""
    until_s: float
    """When its last audible sample sounded."""


@dataclass(frozen=True, slots=True)
class MeasuredCut:
    """What an interrupting line did to the agent's speech."""

    said: RecordedLine
    """The line."""
    utterance: int | None = None
    """The utterance that was audible when the line began; ``None`` if the agent was silent."""
    silent_at_s: float | None = None
    """When its last audible sample reached the caller's ear, in seconds of the recording."""
    latency_s: float | None = None
    """Seconds from the caller's first audible sample to `silent_at_s`; 0 if the agent was silent
    before that."""
    is_reported: bool = False
    """Whether the server reported the cut to the client."""
    played_s: float = 0.0
    """Seconds of the agent's answer that were played."""
    dropped_s: float = 0.0
    """Seconds of the utterance that were synthesised and never played."""
    late_s: float = 0.0
    """Seconds of the utterance that were played after the client had been told of the cut."""
    arrived_late_s: float = 0.0
    """Seconds of audio at or behind the fence that arrived after it."""
    heard: str = ""
    """What the caller heard of the agent's answer, as the history has it."""
    unheard: str = ""
    """The rest of what was generated in that answer."""
    transcript: str | None = None
    """The heard audio as a recogniser transcribed it; ``None`` without a recogniser, or if the
    agent was silent."""


@dataclass(frozen=True, slots=True)
class TurnDecision:
    """A decision of turn taking."""

    at_s: float
    """When it was made, in seconds of the recording."""
    about: str
    """``start``, ``end``, ``barge_in`` or ``nudge``."""
    decision: str
    rule: str
    """The setting or strategy that decided."""
    values: Mapping[str, str | int | float | bool] = field(default_factory=dict)
    """The values that the rule compared."""

    @property
    def is_open(self) -> bool:
        """Whether the decision is only to hold the voice until more is known."""
        return self.decision == "held"


@dataclass(frozen=True, slots=True)
class Held:
    """A stretch for which the agent's voice was held; times are seconds of the recording."""

    from_s: float
    until_s: float
    """When it resumed or was cut; the end of the recording if it did neither."""
    reason: str = ""
    """Who held it, such as ``barge_in``."""


@dataclass(frozen=True, slots=True)
class IgnoredSound:
    """What a line that should leave the agent speaking, such as a cough, did to its speech."""

    said: RecordedLine
    """The line."""
    utterance: int | None = None
    """The utterance that was audible when it began; ``None`` if the agent was silent."""
    is_cut: bool = False
    """Whether the utterance was cut all the same."""
    gap_s: float = 0.0
    """The longest time in seconds for which that utterance was held, from this line to the next."""
    gap_from_s: float | None = None
    """When that gap begins, in seconds of the recording; ``None`` without one."""
    dry_s: float = 0.0
    """Seconds for which the utterance paused in that time because the player ran out of audio."""
    dead_air_s: float = 0.0
    """Seconds of silence that the caller heard, from the agent's last audible sample to its next:
    the gap and the agent's own pauses beside it."""
    lost_s: float = 0.0
    """Seconds of synthesised audio that were skipped or played twice, counted from the first sample
    that differs to the end of what was heard of the utterance."""
    model_calls: int = 0
    """How many answers were generated because of it."""
    turns: int = 0
    """How many turns of the caller it became."""
    decisions: tuple[TurnDecision, ...] = ()
    """The decisions about it in order, first by its sound, then by its words; without those that
    only hold the voice until more is known."""


@dataclass(frozen=True, slots=True)
class LatencyParts:
    """The parts of the time between a line and its answer, in seconds.

    The parts add up to the latency, except that the recogniser and the end-of-turn model work at
    the same time: only the longer of the two counts.
    """

    silence_s: float
    """The silence that turn taking waited for, from the caller's last audible sample."""
    transcription_s: float
    """The recogniser's work."""
    end_of_turn_s: float
    """The end-of-turn model's work."""
    first_text_s: float
    """From the end of the turn to the first text of the answer."""
    first_clause_s: float
    """From there until the first clause was complete and its synthesis began."""
    first_piece_s: float
    """From there to the voice's first piece of audio."""
    playback_s: float
    """From there to the first audible sample: the network, the player's buffer, and the silence
    with which a voice begins."""


@dataclass(frozen=True, slots=True)
class MeasuredAnswer:
    """The agent's answer to a line."""

    said: RecordedLine
    """The line."""
    latency_s: float | None
    """Seconds from the caller's last audible sample to the agent's first; ``None`` if the caller
    heard no answer."""
    parts: LatencyParts | None = None
    """Where that time went; ``None`` without an answer, or if the speech stack does not report
    it."""


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    name: str
    ok: bool
    """Whether it holds."""
    measured: str = ""
    """What it found, in words."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What a rehearsal measured and checked."""

    recording: Recording
    """Both sides of the call."""
    said: tuple[RecordedLine, ...]
    """The lines that the caller said."""
    cuts: tuple[MeasuredCut, ...]
    """One for each interrupting line that was said."""
    answers: tuple[MeasuredAnswer, ...]
    """One for each line that was said as a turn."""
    history: list[dict[str, Any]]
    """The call's history as plain data; times are seconds of the recording."""
    ended: str
    """Why the call ended."""
    problems: tuple[str, ...] = ()
    """Lines that were never said, and errors that the server reported."""
    transcripts: tuple[tuple[float, str], ...] = ()
    """The caller's final transcripts, each with its time."""
    answer_seconds: Mapping[int, float] = field(default_factory=dict)
    """Seconds of audio heard of each of the agent's answers, by their numbers."""
    ignored_sounds: tuple[IgnoredSound, ...] = ()
    """One for each line that was said and should leave the agent speaking."""
    decisions: tuple[TurnDecision, ...] = ()
    """The decisions of turn taking, in order."""
    held: tuple[Held, ...] = ()
    """When the agent's voice was held."""
    is_exact: bool = True
    """Whether what was heard is what was synthesised, sample for sample; not on a telephone."""
    checks: tuple[Check, ...] = ()
    """The checks, in the order in which they are shown."""
    files: tuple[Path, ...] = ()
    """The files that were written."""

    @property
    def ok(self) -> bool:
        """Whether every check holds."""
        return all(check.ok for check in self.checks)

    def with_checks(self, checks: Sequence[Check]) -> Rehearsal:
        """Return a copy with these checks added."""
        return replace(self, checks=(*self.checks, *checks))


Predicate: TypeAlias = Callable[[Rehearsal], bool | tuple[bool, str]]
"""A check of yours: returns whether it holds, optionally with a text that says what it found."""


def agent_entry(history: Sequence[Mapping[str, Any]], answer: int | None) -> Mapping[str, Any]:
    """Return what the agent said in an answer; empty if it said nothing.

    Args:
        history: The history of the call, as JSON; its tools and jobs belong to answers, too.
        answer: The number of the answer; ``None`` for none.
    """
    return next((e for e in history if e["role"] == "agent" and e["answer"] == answer), {})
