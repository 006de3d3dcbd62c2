"""The entries of a history, all immutable, and the record of an answer that was cut."""

from dataclasses import dataclass
from typing import Any, Literal

from .._verbs import AnswerPhase, ToolOutcome, Verb
from ..events import HeardBasis, JobFinished, ToolCall, ToolResult

Directive = Literal["ask", "continue", ""]
"""What a model is told to do after a cut: ask what to do instead, continue with the new
instruction, or nothing."""

ToolMark = Literal["called", "preparing", "began", "committing"]
"""How far a tool without a result has got, as far as known: its body has not started; it has, and
had no effect yet, as it only reads or commits; it has, and may have had one; it is inside its
effect."""


@dataclass(frozen=True, slots=True)
class ToolRecord:
    """A tool of a cut answer, with its outcome."""

    id: str
    """The id of its call."""
    name: str
    outcome: ToolOutcome | None
    """``None`` while it runs."""
    ran_s: float
    """Seconds from its start to its end; 0 for a tool that never started, or still runs."""


@dataclass(frozen=True, slots=True)
class InterruptionRecord:
    """The cut of an answer: when, by what, what was under way, and how much of it was heard."""

    answer: int
    verb: Verb
    by: str
    """Who published the event that cut the answer."""
    cause: str
    """The alias of that event, or the reason in words if no event cut it."""
    phase: AnswerPhase
    """What the answer was doing."""
    at_s: float
    """When it was first cut, in seconds of trio's clock; a stronger verb does not change it."""
    elapsed_s: float
    """Seconds from the start of the answer to the cut."""
    generated: str
    heard: str
    basis: HeardBasis
    step: int = 0
    """The number of the answer's step, from 1; 0 before the first."""
    tools: tuple[ToolRecord, ...] = ()
    """Its tools, in the order of their calls; the history sets them."""
    directive: Directive = ""


@dataclass(frozen=True, slots=True)
class UserEntry:
    """What the user said."""

    at_s: float
    content: str
    role: Literal["user"] = "user"
    is_returned: bool = False
    """Whether a cancel returned it unanswered; then models do not see it."""


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """What an agent said in one answer."""

    at_s: float
    answer: int
    agent: str
    """The name of the bridge."""
    generated: str = ""
    heard: str = ""
    """How much of it the caller heard; always a prefix of ``generated``."""
    interruption: InterruptionRecord | None = None
    role: Literal["agent"] = "agent"
    is_notice: bool = False
    """Whether it tells the caller to wait, or that something failed: the caller hears it, but
    models do not see it."""


@dataclass(frozen=True, slots=True)
class NoteEntry:
    """A line for the model that neither side said."""

    at_s: float
    content: str
    role: Literal["note"] = "note"
    kind: Literal["developer", "control", "fault"] = "developer"
    """``control``: written by a verb; it may quote the user.  ``fault``: a failure of the app or a
    provider; it is for people, and models do not see it."""


def moved_note(answer: int) -> str:
    """Return the note, of kind ``control``, that an answer continues in the background."""
    return f"answer {answer} was moved to the background"


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """A tool that was called, and what it returned."""

    at_s: float
    call: ToolCall
    """The call, under an id that is unique in this history."""
    result: ToolResult | None = None
    role: Literal["tool"] = "tool"
    answer: int = 0
    """The answer that called it; 0 if unknown."""
    said_chars: int = 0
    """How many characters its answer had generated when it was called."""
    mark: ToolMark = "called"
    together: bool = False
    """Whether it was called together with the previous tool, in one step."""

    @property
    def outcome(self) -> ToolOutcome | None:
        """Its outcome; ``None`` while it has no result."""
        return None if self.result is None else self.result.outcome


@dataclass(frozen=True, slots=True)
class JobEntry:
    """The result of a tool that continued in the background."""

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
    # Like dataclasses.asdict() without copying, and ten times as fast.
    return {name: getattr(value, name) for name in value.__slots__}
