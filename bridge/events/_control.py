"""The events of control: verbs, caps and returned input."""

from typing import ClassVar, Literal

from bargein.routes import Event

from .._verbs import AnswerPhase, Verb
from ..validation.foreign_data import ForeignText


class ControlRequested(Event):
    """A verb is used on the work of the call; ``call.handle`` publishes it."""

    type: Literal["call.control"] = "call.control"
    verb: Verb
    text: ForeignText = ""
    """The instruction of ``redirect``, or the note of ``resume``; otherwise empty."""


class CapWarning(Event):
    """An answer has used four fifths of one of its caps; published once per cap and answer."""

    type: Literal["call.cap_warning"] = "call.cap_warning"
    answer: int
    which: ForeignText
    used: float
    limit: float


class InputReturned(Event):
    """Input that waited behind a cancelled answer is returned unanswered."""

    type: Literal["call.input_returned"] = "call.input_returned"
    content: ForeignText
    """What the user said, to be restored in the input box."""


class LongRunning(Event):
    """An answer has been at work for a while; published once per answer."""

    type: Literal["call.long_running"] = "call.long_running"
    answer: int
    elapsed_s: float
    phase: AnswerPhase


class EmergencyStop(Event):
    """Stops everything the agent says and does, whatever conditions its rules have."""

    type: Literal["call.emergency_stop"] = "call.emergency_stop"
    verb: ClassVar[Verb] = "emergency_stop"
    reason: ForeignText = ""
