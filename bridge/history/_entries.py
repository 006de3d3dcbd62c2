"""What a history is made of: immutable entries, and the record of a turn that was cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .._verbs import ToolOutcome, TurnPhase, Verb
from ..events import HeardBasis, JobFinished, ToolCall, ToolResult

Directive = Literal["ask", "continue", ""]
"""What a model is told to do after a cut: ask what to do instead; go on with the new instruction;
or nothing."""

ToolMark = Literal["called", "began", "committing"]
"""How far a tool without a result has got, as far as is known: its body has not begun; it has; it
is inside its effect."""

_DIRECTIVES: dict[Verb, Directive] = {
    "cancel": "ask",
    "emergency_stop": "ask",
    "redirect": "continue",
}


def directive_of(verb: Verb) -> Directive:
    """Return what a model is told to do after a turn was cut by a verb."""
    return _DIRECTIVES.get(verb, "")


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """A tool of a turn that was cut, and what became of it."""

    id: str
    """The id of its call."""
    name: str
    outcome: ToolOutcome | None
    """``None`` while it goes on."""
    ran_s: float
    """Seconds from its start to its end; 0 for a tool that never began, or goes on."""


@dataclass(frozen=True, slots=True)
class InterruptionRecord:
    """That a turn was cut: when, by what, what was under way, and how much of it was heard."""

    turn: int
    verb: Verb
    by: str
    """Who published the event that cut the turn."""
    cause: str
    """The alias of that event, or the reason in words where no event cut it."""
    phase: TurnPhase
    """What the turn was at."""
    at_s: float
    """When it was first cut, in seconds of trio's clock; a stronger verb later does not move it."""
    elapsed_s: float
    """Seconds from the start of the turn to the cut."""
    generated: str
    heard: str
    basis: HeardBasis
    step: int = 0
    """The step the turn was at, from 1; 0 before the first."""
    tools: tuple[ToolRecord, ...] = ()
    """Its tools in the order of their calls; the history fills them in."""
    directive: Directive = ""


@dataclass(frozen=True, slots=True)
class UserEntry:
    """What the user said."""

    at_s: float
    content: str
    role: Literal["user"] = "user"
    is_returned: bool = False
    """Whether it was given back, unanswered, by a cancel: no model is told of it."""


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """What an agent said in one turn."""

    at_s: float
    turn: int
    agent: str
    """The name of the bridge."""
    generated: str = ""
    heard: str = ""
    """What the caller heard of it; always a prefix of `generated`."""
    interruption: InterruptionRecord | None = None
    role: Literal["agent"] = "agent"
    is_notice: bool = False
    """Whether it tells that the caller has to wait, or that something failed: the caller hears it,
    and no model is told that it answered so."""


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """A line for the model that neither side said."""

    at_s: float
    content: str
    role: Literal["note"] = "note"
    kind: Literal["developer", "control", "fault"] = "developer"
    """``control``: a verb left it, and it may quote the user.  ``fault``: something of ours failed;
    it is for people, and no model is told of it."""


def moved_note(turn: int) -> str:
    """Return the note, of the kind ``control``, that a turn goes on in the background."""
    return f"turn {turn} was moved to the background"


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """A tool that was called, and what it returned."""

    at_s: float
    call: ToolCall
    """The call, under an id that is unique in this history."""
    result: ToolResult | None = None
    role: Literal["tool"] = "tool"
    turn: int = 0
    """The turn that called it; 0 where that is not known."""
    said_chars: int = 0
    """How many characters its turn had generated when it was called."""
    mark: ToolMark = "called"
    together: bool = False
    """Whether it was called along with the tool before it, in one step."""

    @property
    def outcome(self) -> ToolOutcome | None:
        """What became of it; ``None`` while it has no result."""
        return None if self.result is None else self.result.outcome


@dataclass(frozen=True, slots=True)
class JobEntry:
    """The result of a tool that went on in the background."""

    at_s: float
    job: JobFinished
    role: Literal["job"] = "job"


Entry = UserEntry | AgentEntry | NoteEntry | ToolEntry | JobEntry


def as_plain(entry: Entry) -> dict[str, Any]:
    """Return an entry as plain data; the role comes first."""
    plain = {"role": entry.role, **_fields(entry)}
    match entry:
        case UserEntry(is_returned=False):
            del plain["is_returned"]
        case AgentEntry() if not entry.is_notice:
            del plain["is_notice"]
        case ToolEntry():
            plain["call"] = entry.call.model_dump(exclude={"type"})
            plain["result"] = entry.result and entry.result.model_dump(exclude={"type"})
        case JobEntry():
            plain["job"] = entry.job.model_dump(exclude={"type"})
    if isinstance(entry, AgentEntry) and entry.interruption is not None:
        cut = entry.interruption
        plain["interruption"] = {**_fields(cut), "tools": [_fields(tool) for tool in cut.tools]}
    return plain


def _fields(value: Any) -> dict[str, Any]:
    # What dataclasses.asdict does, without copying; it takes ten times as long.
    return {name: getattr(value, name) for name in value.__slots__}
