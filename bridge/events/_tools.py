"""The events of tools: calls and results, permissions, questions, and background jobs."""

from typing import Any, Literal

from pydantic import Field

from bargein.routes import Event

from .._verbs import JobEnd, ToolOutcome
from ..validation.foreign_data import ForeignText

QuestionOutcome = Literal["answered", "interrupted", "timed_out", "withdrawn"]
"""How a tool's question to the caller ended."""


class ToolCall(Event):
    """The agent calls a tool."""

    type: Literal["agent.tool_call"] = "agent.tool_call"
    name: ForeignText
    arguments: dict[str, Any] = Field(default_factory=dict)
    id: ForeignText = ""
    """Ties a result to its call."""
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; callers of a server do not see it."""
    provider: str = Field(default="", exclude=True, repr=False)
    """Where `extra` came from; see ``ToolCallRequest``."""
    extra: dict[str, Any] = Field(default_factory=dict, exclude=True, repr=False)
    """The provider's own fields, which only it gets back."""


class ToolResult(Event):
    """A tool returned or failed."""

    type: Literal["agent.tool_result"] = "agent.tool_result"
    name: ForeignText
    id: ForeignText = ""
    content: ForeignText = ""
    """The result as the model reads it."""
    error: bool = False
    outcome: ToolOutcome = "completed"
    ran_s: float = 0.0
    """Seconds from its start to its end; 0 for a tool that never started."""
    detail: ForeignText = Field(default="", exclude=True, repr=False)
    """For the developer: the line of the app that raised the error.  The model does not see it."""
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; callers of a server do not see it."""


class ToolProgress(Event):
    """A tool reports its progress."""

    type: Literal["agent.tool_progress"] = "agent.tool_progress"
    id: ForeignText
    name: ForeignText
    text: ForeignText = ""
    fraction: float | None = Field(default=None, ge=0, le=1)
    """0 to 1, or ``None`` if the tool cannot say."""
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; callers of a server do not see it."""


class ToolOutput(Event):
    """A tool wrote to its terminal."""

    type: Literal["agent.tool_output"] = "agent.tool_output"
    id: ForeignText
    name: ForeignText
    stream: Literal["stdout", "stderr", "tty"] = "stdout"
    text: ForeignText
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; callers of a server do not see it."""


class PermissionRequested(Event):
    """A tool asks whether it may run; ``handle.respond()`` answers."""

    type: Literal["agent.permission_requested"] = "agent.permission_requested"
    id: ForeignText
    """The id of the tool's call."""
    name: ForeignText
    arguments: dict[str, Any] = Field(default_factory=dict)
    by: Literal["caller", "operator"] = "caller"
    """Who is asked; the caller is never told of a question to the operator."""

    @property
    def for_operator(self) -> bool:
        """Whether callers of a server do not see it."""
        return self.by == "operator"


class PermissionAnswered(Event):
    """A permission question is closed."""

    type: Literal["agent.permission_answered"] = "agent.permission_answered"
    id: ForeignText
    name: ForeignText
    verdict: Literal["allowed", "denied", "withdrawn"]
    """``withdrawn``: the answer was interrupted, and nobody said yes or no."""
    remembered: bool = False
    """Whether the answer applies to further calls of the tool in this conversation."""
    by: Literal["caller", "operator"] = "caller"
    """Who was asked."""

    @property
    def for_operator(self) -> bool:
        """Whether callers of a server do not see it."""
        return self.by == "operator"


class QuestionAsked(Event):
    """A tool asks the caller a question; the caller's next turn or ``handle.answer()`` answers
    it."""

    type: Literal["agent.question_asked"] = "agent.question_asked"
    id: ForeignText
    """The id of the question; a tool may ask several, one after the other."""
    call: ForeignText
    """The id of the tool's call."""
    name: ForeignText
    """The tool; empty for one that asks the operator, which no caller learns of."""
    text: ForeignText
    """What the agent says."""
    choices: tuple[ForeignText, ...] = ()
    """What the caller may choose from; empty for a free answer."""


class QuestionClosed(Event):
    """A tool no longer waits for the caller's answer."""

    type: Literal["agent.question_closed"] = "agent.question_closed"
    id: ForeignText
    name: ForeignText
    outcome: QuestionOutcome


def _usual_end(job: dict[str, Any]) -> JobEnd:
    """Return how a job ended, of which only the result and its outcome are known."""
    outcome = job.get("outcome")
    if outcome == "timed_out":
        return "timed_out"
    if job.get("error"):
        return "failed"
    return "completed" if outcome in ("completed", "completed_after_interrupt") else "stopped"


class JobFinished(Event):
    """A background job has its result; published once, at the next boundary of the conversation.

    This includes a job that somebody stopped, or that failed or was capped: `ended` says so, and no
    agent reports a stopped one by itself.
    """

    type: Literal["agent.job_finished"] = "agent.job_finished"
    id: ForeignText
    name: ForeignText
    content: ForeignText
    """The result; for a stopped answer, the text that it had generated unheard, perhaps none."""
    error: bool = False
    outcome: ToolOutcome = "completed"
    """What is known of its effect: for a stopped job ``effect_unknown``, or
    ``cancelled_before_effect`` if its tool surely had none; ``completed_after_interrupt`` for one
    that ended by itself within its grace."""
    ended: JobEnd = Field(default_factory=_usual_end)
    """How it ended: by itself (``completed``, or ``failed`` with its own error), ``stopped`` by
    somebody, ``capped`` by one of its caps, or ``timed_out``.  By default what `error` and
    `outcome` suggest."""
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; callers of a server do not see it."""


class JobAnnounced(Event):
    """A result must be reported again, because the answer that reported it was cut before a word
    was heard."""

    type: Literal["agent.job_announced"] = "agent.job_announced"
    id: ForeignText
    name: ForeignText
    content: ForeignText
    error: bool = False
    outcome: ToolOutcome = "completed"
    ended: JobEnd = Field(default_factory=_usual_end)
    """How it ended, as in ``JobFinished``."""
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; callers of a server do not see it."""
