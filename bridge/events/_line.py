"""The events of the line: who answers at its other end, and what is heard there."""

from typing import Literal

from pydantic import Field

from bargein.routes import Event

WhoAnswers = Literal["person", "voicemail", "menu", "screening", "silence"]
"""Who may answer a telephone: a person; a machine that takes a message; a menu of keys or words; a
service that asks who calls before it disturbs a person; nobody who says anything."""

AnsweredBasis = Literal["words", "sound", "time", "carrier"]
"""By what that is told: the words of the greeting; a tone; how long it lasts; the carrier's own
detection."""


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
