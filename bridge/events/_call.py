"""The events of the call: its start and its end, its answers, its state, and the caller's line."""

from typing import Literal

from bargein.routes import Event, Outcome

from ..validation.foreign_data import ForeignText
from ._caller import Button

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

CallAction = Literal["transfer", "dtmf"]
"""What an agent can ask of the caller's line: to transfer the caller, or to press a key."""


CallActionCause = Literal[
    "failed",
    "busy",
    "no_answer",
    "refused",
    "declined",
    "interrupted",
    "caller_left",
    "unable",
]
"""Why the line did not do what an agent asked for.

``busy`` and ``no_answer``: the other end.  ``refused``: the carrier does not call that number.
``declined``: the colleague did not take the call.  ``interrupted``: the caller spoke over the
announcement.  ``caller_left``: the caller hung up meanwhile.  ``unable``: this line cannot do it.
"""

TransferStep = Literal["announced", "dialled", "answered", "accepted", "returned"]
"""How far a transfer has come: the caller has heard of it; the number is called; somebody answered;
the colleague takes the call; the caller is back with the agent."""

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


class DTMFOutput(Event):
    """Asks the transport to press a key, for a menu at the other end.

    ``CallActionCompleted`` or ``CallActionFailed`` answers it.
    """

    type: Literal["agent.dtmf"] = "agent.dtmf"
    button: Button


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


class TransferCall(Event):
    """Asks the transport to transfer the caller to a telephone number.

    ``CallActionCompleted`` or ``CallActionFailed`` answers it.
    """

    type: Literal["call.transfer"] = "call.transfer"
    target_phone_number: ForeignText
    announce: ForeignText = ""
    """What the caller is told before; empty for nothing."""
    briefing: ForeignText = ""
    """What a colleague is told before they take the call, while the caller waits; empty transfers
    the caller without asking."""
    if_interrupted: Literal["continue", "ask"] = "continue"
    """Whether a caller who speaks over the announcement, or while a colleague is asked, is
    transferred all the same, or is asked again: then nothing is transferred."""


class TransferProgressed(Event):
    """A transfer has come further; ``CallActionCompleted`` or ``CallActionFailed`` ends it."""

    type: Literal["call.transfer_progressed"] = "call.transfer_progressed"
    step: TransferStep


class CallActionCompleted(Event):
    """The transport executed a ``TransferCall`` or ``DTMFOutput``."""

    type: Literal["call.action_completed"] = "call.action_completed"
    action: CallAction
    note: ForeignText = ""
    """What else the model should know of it, such as that the caller spoke meanwhile."""


class CallActionFailed(Event):
    """A ``TransferCall`` or ``DTMFOutput`` was not executed, as far as the call knows."""

    type: Literal["call.action_failed"] = "call.action_failed"
    action: CallAction
    cause: CallActionCause = "failed"
    """The kind of reason."""
    reason: ForeignText
    """Why, in a few words for the model and for people: the line cannot do it, the transport's own
    words, the class of what it raised, or that it took too long."""


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
