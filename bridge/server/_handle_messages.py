"""The messages of the native protocol by which a client holds the handle of its call.

Every question may carry a ``request`` that its answers repeat.  Times are in milliseconds from the
moment in which the message was made: the clocks of the two sides know nothing of each other.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .._verbs import PolicyKind, TurnPhase, Verb
from ..control._steps import StepState
from ..events import CallState
from ._message_base import JsonObject, Milliseconds, Request, Wire

# --- client to server ---------------------------------------------------------------------------


class UseVerb(Wire):
    """Uses a verb on the work of the call; a receipt answers it, and later ``settled``."""

    type: Literal["control"] = "control"
    verb: Verb
    text: Annotated[str, Field(max_length=10_000)] = ""
    """The instruction of ``redirect``, the note of ``resume``; else without meaning."""
    request: Request | None = None

    @model_validator(mode="after")
    def _check_text(self) -> UseVerb:
        if self.verb == "redirect" and not self.text.strip():
            raise ValueError("redirect needs a text")
        return self


class AnswerPermission(Wire):
    """Answers the question whether a tool may run.

    The event ``agent.permission_answered`` tells that it was taken, an error with the code
    ``bad_message`` that nobody waits for it any more.
    """

    type: Literal["permission"] = "permission"
    id: Annotated[str, Field(max_length=256)]
    """The id of the question, which is that of the tool's call."""
    allow: bool
    remember: bool = False
    """Whether the answer holds for further calls of that tool in this conversation."""
    request: Request | None = None


class AnswerQuestion(Wire):
    """Answers what a tool has asked the caller, as if they had said it.

    The event ``agent.question_closed`` tells that it was taken, an error with the code
    ``bad_message`` that nobody waits for it any more.
    """

    type: Literal["answer"] = "answer"
    id: Annotated[str, Field(max_length=256)]
    """The id of the question."""
    text: Annotated[str, Field(max_length=10_000)]
    """One of its choices, or any words; "never mind" withdraws it."""
    request: Request | None = None

    @model_validator(mode="after")
    def _check_text(self) -> AnswerQuestion:
        if not self.text.strip():
            raise ValueError("answer needs a text")
        return self


class DescribeVerb(Wire):
    """Asks what a verb would do now."""

    type: Literal["describe"] = "describe"
    verb: Verb
    request: Request


class AskSnapshot(Wire):
    """Asks what the call is doing."""

    type: Literal["snapshot"] = "snapshot"
    request: Request
    follow: bool = False
    """Whether it is told again whenever something of it changes, but for what only grows: times,
    the text, and less than a twentieth of a cap.  The latest request holds, also one without it."""


HandleMessage = UseVerb | AnswerPermission | AnswerQuestion | DescribeVerb | AskSnapshot


# --- server to client ---------------------------------------------------------------------------


class StoppedTool(Wire):
    """A tool that a verb has stopped."""

    id: str
    tool: str


class RunningTool(Wire):
    """A tool that a verb has not stopped."""

    id: str
    tool: str
    policy: PolicyKind
    deadline_ms: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """In how long it will be stopped; absent if it goes on as a background job."""


class VerbReceipt(Wire):
    """What a verb did."""

    type: Literal["receipt"] = "receipt"
    id: int
    """Its number within the call; the same verb used again gives the same one."""
    verb: Verb
    accepted: bool
    reason: str = ""
    """Why it did nothing; empty if it was accepted."""
    turn: int | None = None
    phase: TurnPhase
    stopped: tuple[StoppedTool, ...] = Field(default=(), strict=False)
    still_running: tuple[RunningTool, ...] = Field(default=(), strict=False)
    upgraded_from: Verb | None = None
    request: Request | None = None


class VerbSettled(Wire):
    """Everything that a verb has set in motion is over; exactly one for each receipt."""

    type: Literal["settled"] = "settled"
    id: int
    """The number of the receipt."""
    request: Request | None = None


class Description(Wire):
    """What a verb would do at this moment, in one line."""

    type: Literal["description"] = "description"
    request: Request
    verb: Verb
    text: str
    possible: bool
    """Whether it would do anything."""


class StepOfTurn(Wire):
    """A step of a turn."""

    tool: str
    """The tool; empty for a question to the model."""
    id: str
    """The id of the tool's call; empty for the model."""
    state: StepState
    elapsed_ms: Milliseconds
    """For how long it has run, or ran."""


class VerbNow(Wire):
    """What a verb would do at this moment."""

    text: str
    possible: bool
    """Whether it would do anything."""


class ToolAtWork(Wire):
    """A tool that runs."""

    id: str
    name: str
    policy: PolicyKind
    elapsed_ms: Milliseconds
    """Since it began; 0 while it waits for permission."""


class OpenQuestion(Wire):
    """A tool that waits for permission."""

    id: str
    name: str
    arguments: JsonObject


class AskedQuestion(Wire):
    """What a tool has asked the caller."""

    id: str
    name: str
    """The tool."""
    text: str
    choices: tuple[str, ...] = Field(default=(), strict=False)
    """What the caller may choose from; empty for a free answer."""


class CapUse(Wire):
    """How much of a cap a turn has used."""

    used: float
    limit: float


class SnapshotMessage(Wire):
    """What the call is doing at this moment."""

    type: Literal["snapshot"] = "snapshot"
    request: Request
    state: CallState
    number: int
    """The number of the last ``state`` message."""
    elapsed_ms: float
    """For how long the state has lasted."""
    turn: int | None = None
    phase: TurnPhase
    step: int
    steps: int | None = None
    label: str
    text: str
    """What the turn has generated so far."""
    active_ms: float
    """For how long the turn has been worked on; pauses do not count."""
    total_ms: float
    """Since the turn began."""
    caps: dict[str, CapUse]
    """Each cap that the turn has."""
    step_list: tuple[StepOfTurn, ...] = Field(default=(), strict=False)
    """The steps of the turn so far, in the order in which they began."""
    tools: tuple[ToolAtWork, ...] = Field(default=(), strict=False)
    backgrounded: int
    """How many jobs go on in the background."""
    permissions: tuple[OpenQuestion, ...] = Field(default=(), strict=False)
    question: AskedQuestion | None = None
    """Absent if no tool waits for the caller's answer."""
    verbs: dict[Verb, VerbNow]
    """What each verb would do; ``shutdown`` is not among them."""
    listening_error: str = ""
    """The class of the error for which the caller cannot be heard; empty while it can."""
