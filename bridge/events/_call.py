"""The events of the call: its start and its end, its answers, its state, and the caller's line."""

from typing import Literal

from bargein.routes import Event, Outcome

from ..validation.foreign_data import ForeignText

CallState = Literal[
    "idle",
    "listening",
    "thinking",
    "speaking",
    "tool",
    "waiting_permission",
    "waiting_input",
    "pausing",
    "paused",
    "stopping",
    "closed",
]
"""What the call is doing, from the caller's point of view."""


AnswerStage = Literal[
    "ear",
    "end_of_turn",
    "first_token",
    "between_tokens",
    "tool",
    "first_audio",
    "between_audio",
    "line",
]
"""What the caller waits for: the words of their turn; the decision that it is over; the first text
of the answer; its next text; a tool; the first sound of the text; its next sound; or their own
connection."""


class CallStarted(Event):
    """The call is open."""

    type: Literal["call.started"] = "call.started"
    call_id: ForeignText
    caller: ForeignText = ""
    """Who calls, according to the transport (a telephone number, a name); may be empty."""
    audio: bool = False
    """Whether the caller hears audio; otherwise only text travels."""


class CallEnded(Event):
    """The call is over."""

    type: Literal["call.ended"] = "call.ended"
    reason: ForeignText = "ended"


class EndCall(Event):
    """Ends the call once everything said so far has been heard."""

    type: Literal["call.end"] = "call.end"
    reason: ForeignText = "agent_ended"


class AnswerEnded(Event):
    """An answer is over: all of it was heard, or it was cut; exactly one for each answer."""

    type: Literal["call.answer_ended"] = "call.answer_ended"
    answer: int
    agent: ForeignText
    outcome: Outcome
    generated: ForeignText = ""
    heard: ForeignText = ""
    capped: ForeignText = ""
    """The cap that ended it, for the outcome ``capped``; otherwise empty."""
    finish_reason: str = ""
    """Why the model's last text of it ended, in the provider's word: "length" was cut off by the
    limit on tokens, "content_filter" by a filter; empty if no model said."""
    unanswered: bool = False
    """Whether the caller still waits for words: its model or a cap ended it without any."""


class StateChanged(Event):
    """The call's state changed."""

    type: Literal["call.state_changed"] = "call.state_changed"
    state: CallState
    number: int
    """Rises by one with each change of state."""


class StageStalled(Event):
    """The caller has heard nothing for longer than a stage of the answer may take.

    Published again whenever the silence since the last such event, or since the last sound, has
    lasted as long again.
    """

    type: Literal["call.stage_stalled"] = "call.stage_stalled"
    stage: AnswerStage
    """What the caller waits for."""
    silent_s: float
    """How many seconds the caller has heard nothing."""
    count: int
    """How often during the wait for this answer, from 1."""
    answer: int = 0
    """The number of the agent's answer; 0 before it has started."""


class EventLoopBlocked(Event):
    """Code of the app blocked all calls of the process for a while."""

    type: Literal["call.event_loop_blocked"] = "call.event_loop_blocked"
    place: str
    """The file and line of the code."""
    function: str
    """The function that it is in."""
    blocked_s: float
    """For how many seconds it had blocked when it was noticed."""


class LogMetric(Event):
    """A measurement, for transports and operators to keep."""

    type: Literal["call.metric"] = "call.metric"
    name: ForeignText
    value: float | int | str | bool
    unit: ForeignText = ""
