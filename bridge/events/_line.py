"""The events of the line: who answers at its other end, and what is heard there."""

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from bargein.routes import Event

from ..validation.foreign_data import ForeignText
from ._caller import Button

WhoAnswers = Literal["person", "voicemail", "menu", "screening", "silence"]
"""Who may answer a telephone: a person; a machine that takes a message; a menu of keys or words; a
service that asks who calls before it disturbs a person; nobody who says anything."""

AnsweredBasis = Literal["words", "sound", "time", "carrier"]
"""By what that is told: the words of the greeting; a tone; how long it lasts; the carrier's own
detection."""

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


class AnsweredBy(Event):
    """Who answers the call, as far as is known now; published again when that changes.

    A person who answers may turn out to be a machine that paused for a second.
    """

    type: Literal["line.answered_by"] = "line.answered_by"
    who: WhoAnswers
    basis: AnsweredBasis
    after_ms: float = Field(ge=0)
    """How many milliseconds after the call was answered that is said."""


class ToneHeard(Event):
    """A tone is over behind which a machine records, such as the beep of a voicemail."""

    type: Literal["line.tone_heard"] = "line.tone_heard"
    frequency_hz: float = Field(gt=0)
    lasted_s: float = Field(gt=0)


class CallerOnHold(Event):
    """The caller has put the line on hold, or is back.

    Meanwhile the caller hears nothing, and what plays to us is neither a turn nor a barge-in.
    """

    type: Literal["line.on_hold"] = "line.on_hold"
    on: bool
    lasted_s: float = Field(default=0.0, ge=0)
    """How long it has lasted when the caller is back."""


class PrivateInput(Event):
    """The caller pressed a key, or said something, that only what asked for it may know.

    It has neither the key nor the words; see ``Keypad.ask_privately()``.
    """

    type: Literal["line.private_input"] = "line.private_input"


class RecordingPaused(Event):
    """Nothing of the line is recorded until ``RecordingResumed``."""

    type: Literal["line.recording_paused"] = "line.recording_paused"


class RecordingResumed(Event):
    """The line is recorded again."""

    type: Literal["line.recording_resumed"] = "line.recording_resumed"
    paused_s: float = Field(ge=0)


class TransferProgressed(Event):
    """A transfer has come further; ``CallActionCompleted`` or ``CallActionFailed`` ends it."""

    type: Literal["call.transfer_progressed"] = "call.transfer_progressed"
    step: TransferStep


class TransferCall(Event):
    """Asks the transport to transfer the caller to a telephone number.

    ``CallActionCompleted`` or ``CallActionFailed`` answers it.
    """

    type: Literal["call.transfer"] = "call.transfer"
    target_phone_number: ForeignText
    announce: ForeignText = ""
    """What the caller is told before; empty for nothing."""
    briefing: ForeignText = Field(default="", exclude=True, repr=False)
    """What a colleague is told before they take the call, while the caller waits; empty transfers
    the caller without asking.  Not sent to the caller's client."""
    if_interrupted: Literal["continue", "ask"] = "continue"
    """Whether a caller who speaks over the announcement, or while a colleague is asked, is
    transferred all the same, or is asked again: then nothing is transferred."""


class CallActionCompleted(Event):
    """The transport executed a ``TransferCall`` or ``DTMFOutput``."""

    type: Literal["call.action_completed"] = "call.action_completed"
    action: CallAction
    note: ForeignText = ""
    """What else the model should know of it, such as that the caller spoke meanwhile."""

    @model_serializer(mode="wrap")
    def _leave_out_empty_note(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        if not self.note:
            fields.pop("note", None)
        return fields


class CallActionFailed(Event):
    """A ``TransferCall`` or ``DTMFOutput`` was not executed, as far as the call knows."""

    type: Literal["call.action_failed"] = "call.action_failed"
    action: CallAction
    cause: CallActionCause = "failed"
    """The kind of reason."""
    reason: ForeignText
    """Why, in a few words for the model and for people: the line cannot do it, the transport's own
    words, the class of what it raised, or that it took too long."""


class DTMFOutput(Event):
    """Asks the transport to press a key, for a menu at the other end.

    ``CallActionCompleted`` or ``CallActionFailed`` answers it.
    """

    type: Literal["agent.dtmf"] = "agent.dtmf"
    button: Button
