"""The events of a voice call.

Facts about the caller start with ``User``, facts about the agent with ``Agent``; the rest belong
to the call.  Audio is two slotted, frozen dataclasses: they are routed like events, but never
validated, copied or logged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field

from bargein.routes import Event, register

from ._verbs import ToolOutcome as ToolOutcome
from ._verbs import TurnPhase as TurnPhase
from ._verbs import Verb as Verb
from ._voice_events import AgentIdle as AgentIdle
from ._voice_events import AgentSpeechHeld as AgentSpeechHeld
from ._voice_events import AgentSpeechReleased as AgentSpeechReleased
from ._voice_events import DecisionValue as DecisionValue
from ._voice_events import ListeningFailed as ListeningFailed
from ._voice_events import ListeningResumed as ListeningResumed
from ._voice_events import TranscriptionFailed as TranscriptionFailed
from ._voice_events import TurnDecided as TurnDecided
from ._voice_events import TurnLikelyOver as TurnLikelyOver
from ._voice_events import TurnScored as TurnScored
from ._voice_events import TurnWentOn as TurnWentOn
from ._voice_events import UserAway as UserAway
from ._voice_events import VoiceHint as VoiceHint
from ._voice_events import VoiceSettled as VoiceSettled
from ._voice_events import VoiceStarted as VoiceStarted
from ._voice_events import VoiceStopped as VoiceStopped
from ._voice_events import VoiceWords as VoiceWords

__all__ = [
    "AgentAudio",
    "AgentAudioComplete",
    "AgentError",
    "AgentGenerationComplete",
    "AgentHandoff",
    "AgentIdle",
    "AgentResponse",
    "AgentSpeechCut",
    "AgentSpeechHeld",
    "AgentSpeechReleased",
    "AgentSpeechSent",
    "AgentStartedSpeaking",
    "AgentStoppedSpeaking",
    "AgentTextComplete",
    "AgentUtteranceQueued",
    "Button",
    "CallAction",
    "CallActionCompleted",
    "CallActionFailed",
    "CallEnded",
    "CallStarted",
    "CallState",
    "CapWarning",
    "ControlRequested",
    "CustomReceived",
    "DTMFInput",
    "DTMFOutput",
    "DecisionValue",
    "EmergencyStop",
    "EndCall",
    "HeardBasis",
    "InputReturned",
    "JobAnnounced",
    "JobFinished",
    "ListeningFailed",
    "ListeningResumed",
    "LogMetric",
    "LongRunning",
    "Outcome",
    "PermissionAnswered",
    "PermissionRequested",
    "QuestionAsked",
    "QuestionClosed",
    "QuestionOutcome",
    "StateChanged",
    "ToolCall",
    "ToolOutcome",
    "ToolOutput",
    "ToolProgress",
    "ToolResult",
    "TranscriptionFailed",
    "TransferCall",
    "TurnDecided",
    "TurnEnded",
    "TurnLikelyOver",
    "TurnPhase",
    "TurnScored",
    "TurnWentOn",
    "UserAudio",
    "UserAway",
    "UserStartedSpeaking",
    "UserStoppedSpeaking",
    "UserTranscriptionReceived",
    "Verb",
    "VoiceHint",
    "VoiceSettled",
    "VoiceStarted",
    "VoiceStopped",
    "VoiceWords",
    "WordTiming",
]


Outcome = Literal[
    "completed",
    "interrupted",
    "redirected",
    "backgrounded",
    "capped",
    "failed",
    "disconnected",
    "shutdown",
]
"""How a turn ended: one word per turn."""

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
"""What the call is doing, seen by the caller."""

QuestionOutcome = Literal["answered", "interrupted", "timed_out", "withdrawn"]
"""How a tool's question to the caller ended."""

HeardBasis = Literal["words", "reported", "clock", "text"]
"""What is known of how far an utterance was heard, best first: word timings of the speech engine;
positions that the caller's player reported; the clock; or only that the text was sent."""

CallAction = Literal["transfer", "dtmf"]
"""What an agent can ask of the caller's line: to pass the caller on, or to press a key."""

Button = Literal["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "*", "#", "A", "B", "C", "D"]
"""A key of a telephone keypad (ITU-T Q.23)."""


# --- the caller ---------------------------------------------------------------------------------


class UserStartedSpeaking(Event):
    """The caller began to speak (voice activity, before any word is known)."""

    type: Literal["user.started_speaking"] = "user.started_speaking"


class UserStoppedSpeaking(Event):
    """The caller's turn ended: end of turn was detected, and what was said is transcribed.

    A sound of which no words are known is no turn; ``TranscriptionFailed`` tells of it.
    """

    type: Literal["user.stopped_speaking"] = "user.stopped_speaking"


class UserTranscriptionReceived(Event):
    """What the caller said, as text."""

    type: Literal["user.transcription"] = "user.transcription"
    content: str
    """The words, never empty of meaning for a final transcript."""
    final: bool = True
    """False for an interim transcript, which a later one replaces."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """0 to 1, or None where the recogniser gives none."""


@register
@dataclass(frozen=True, slots=True)
class UserAudio:
    """One frame of what the caller's microphone hears."""

    type: ClassVar[str] = "user.audio"
    pcm: bytes
    """PCM16 little-endian mono; 20 ms at 16 kHz = 640 bytes."""
    sample_rate_hz: int = 16_000


class DTMFInput(Event):
    """The caller pressed a key."""

    type: Literal["user.dtmf"] = "user.dtmf"
    button: Button


class CustomReceived(Event):
    """The caller's client sent data of its own."""

    type: Literal["user.custom"] = "user.custom"
    metadata: dict[str, Any]


# --- the agent ----------------------------------------------------------------------------------


class AgentResponse(Event):
    """A piece of what the agent wants to say.

    Pieces are joined as they are, so each brings its own spaces.
    """

    type: Literal["agent.response"] = "agent.response"
    content: str
    interruptible: bool = True
    """False: once it is being said, no route may cut it; the flag ends with its utterance."""


@dataclass(frozen=True, slots=True)
class WordTiming:
    """Where a word lies in a piece of speech."""

    text: str
    """The word as written, with the punctuation that follows it, without spaces around it."""
    start_s: float
    """Seconds from the first sample of the piece."""
    end_s: float


@register
@dataclass(frozen=True, slots=True)
class AgentAudio:
    """Synthesised speech for the caller: a piece of audio and the text that it says."""

    type: ClassVar[str] = "agent.audio"
    pcm: bytes
    """PCM16 little-endian mono, any length."""
    sample_rate_hz: int
    text: str = ""
    """What this audio says, as it stands in the AgentResponse (spaces included).  Empty for audio
    that goes on saying the text of the piece before it."""
    words: tuple[WordTiming, ...] = ()
    """Where the words of `text` lie, counted from the first sample of this piece; empty if the
    engine does not know."""
    last: bool = True
    """Whether the audio of `text` ends with this piece."""
    utterance: int = 0
    """The utterance it belongs to; a voice has it from ``bridge.utterance_of(message)`` of
    the ``AgentResponse`` it says.  0 for the newest of the turn that published it, and an error
    where no turn did, or none that has said something."""


class AgentStartedSpeaking(Event):
    """The first sound of an utterance reached the caller."""

    type: Literal["agent.started_speaking"] = "agent.started_speaking"
    utterance: int


class AgentStoppedSpeaking(Event):
    """The agent fell silent: an utterance was played to its end, or cut."""

    type: Literal["agent.stopped_speaking"] = "agent.stopped_speaking"
    utterance: int
    cut: bool = False
    """True when something of the utterance was never heard."""


class AgentSpeechSent(Event):
    """Words that the caller has now heard, in the order in which they were heard."""

    type: Literal["agent.speech_sent"] = "agent.speech_sent"
    content: str
    utterance: int


class AgentSpeechCut(Event):
    """What of a cut utterance was heard, and what never will be; published once it is known."""

    type: Literal["agent.speech_cut"] = "agent.speech_cut"
    utterance: int
    heard: str
    unheard: str
    """The rest of what was generated."""
    at_ms: float
    """How much of the utterance's audio was played."""
    basis: HeardBasis


class AgentTextComplete(Event):
    """No more text of an utterance will come: what waits for the rest of a clause may be said."""

    type: Literal["agent.text_complete"] = "agent.text_complete"
    utterance: int


class AgentAudioComplete(Event):
    """All audio of an utterance was synthesised; no more will come."""

    type: Literal["agent.audio_complete"] = "agent.audio_complete"
    utterance: int


class AgentUtteranceQueued(Event):
    """All audio of an utterance was handed to the transport; told again if some is given again."""

    type: Literal["agent.utterance_queued"] = "agent.utterance_queued"
    utterance: int


class AgentGenerationComplete(Event):
    """A generation ended; published exactly once for each, however it ended."""

    type: Literal["agent.generation_complete"] = "agent.generation_complete"
    outcome: Outcome
    content: str = ""
    """All text that was generated, heard or not."""
    turn: int = 0
    """The number of the turn within its call, from 1."""


class AgentHandoff(Event):
    """The floor goes to another agent of the call."""

    type: Literal["agent.handoff"] = "agent.handoff"
    target: str
    """The name of the bridge that gets the floor."""
    reason: str = ""


class AgentError(Event):
    """Something of ours failed; the call goes on."""

    type: Literal["agent.error"] = "agent.error"
    message: str
    """What went wrong, for a person; names the error's class, and says what the framework says of
    it, never what was said."""
    route: str = ""
    """The chain that failed, as it was written."""
    stage: str = ""
    """The stage of that chain."""
    detail: str = Field(default="", exclude=True, repr=False)
    """For the developer: the text of the exception, which may quote what was said, and the line of
    the app that raised it.  It is left out wherever the event is written as JSON."""


class ToolCall(Event):
    """The agent calls a tool."""

    type: Literal["agent.tool_call"] = "agent.tool_call"
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    id: str = ""
    """Ties a result to its call."""
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; no caller of a server is told of such a tool."""


class ToolResult(Event):
    """A tool returned or failed."""

    type: Literal["agent.tool_result"] = "agent.tool_result"
    name: str
    id: str = ""
    content: str = ""
    """What the model is told."""
    error: bool = False
    outcome: ToolOutcome = "completed"
    ran_s: float = 0.0
    """Seconds from its start to its end; 0 for a tool that never began."""
    detail: str = Field(default="", exclude=True, repr=False)
    """For the developer: the line of the app that raised the error.  The model is not told."""
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; no caller of a server is told of such a tool."""


class ToolProgress(Event):
    """A tool tells how far it is."""

    type: Literal["agent.tool_progress"] = "agent.tool_progress"
    id: str
    name: str
    text: str = ""
    fraction: float | None = Field(default=None, ge=0, le=1)
    """0 to 1, or None where the tool cannot say."""
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; no caller of a server is told of such a tool."""


class ToolOutput(Event):
    """A tool wrote to its terminal."""

    type: Literal["agent.tool_output"] = "agent.tool_output"
    id: str
    name: str
    stream: Literal["stdout", "stderr", "tty"] = "stdout"
    text: str
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; no caller of a server is told of such a tool."""


class PermissionRequested(Event):
    """A tool asks whether it may run; ``handle.respond()`` answers."""

    type: Literal["agent.permission_requested"] = "agent.permission_requested"
    id: str
    """The id of the tool's call."""
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    by: Literal["caller", "operator"] = "caller"
    """Who is asked; the caller is never told of a question to the operator."""


class PermissionAnswered(Event):
    """A question for permission is closed."""

    type: Literal["agent.permission_answered"] = "agent.permission_answered"
    id: str
    name: str
    verdict: Literal["allowed", "denied", "withdrawn"]
    """``withdrawn``: the turn was interrupted, and nobody said yes or no."""
    remembered: bool = False
    """Whether the answer holds for further calls of the tool in this conversation."""
    by: Literal["caller", "operator"] = "caller"
    """Who was asked."""


class QuestionAsked(Event):
    """A tool asks the caller something; their next turn answers, or ``handle.answer()``."""

    type: Literal["agent.question_asked"] = "agent.question_asked"
    id: str
    """Its own: a tool may ask several, one after the other."""
    call: str
    """The id of the tool's call."""
    name: str
    """The tool."""
    text: str
    """What the agent says."""
    choices: tuple[str, ...] = ()
    """What the caller may choose from; empty for a free answer."""


class QuestionClosed(Event):
    """A tool no longer waits for the caller's answer."""

    type: Literal["agent.question_closed"] = "agent.question_closed"
    id: str
    name: str
    outcome: QuestionOutcome


class JobFinished(Event):
    """A background job has its result; published once, at the next boundary of the conversation."""

    type: Literal["agent.job_finished"] = "agent.job_finished"
    id: str
    name: str
    content: str
    error: bool = False
    outcome: ToolOutcome = "completed"
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; no caller of a server is told of such a tool."""


class JobAnnounced(Event):
    """A result is to be told anew, as the answer that told it was cut before a word was heard."""

    type: Literal["agent.job_announced"] = "agent.job_announced"
    id: str
    name: str
    content: str
    error: bool = False
    outcome: ToolOutcome = "completed"
    for_operator: bool = Field(default=False, exclude=True, repr=False)
    """Whether its tool asks the operator; no caller of a server is told of such a tool."""


class DTMFOutput(Event):
    """Asks the transport to press a key, for a menu at the other end.

    ``CallActionCompleted`` or ``CallActionFailed`` answers it.
    """

    type: Literal["agent.dtmf"] = "agent.dtmf"
    button: Button


# --- the call -----------------------------------------------------------------------------------


class CallStarted(Event):
    """The call is open; nothing was said yet."""

    type: Literal["call.started"] = "call.started"
    call_id: str
    caller: str = ""
    """Who calls, as the transport tells it (a telephone number, a name); may be empty."""
    audio: bool = False
    """Whether the caller hears audio; otherwise only text travels."""


class CallEnded(Event):
    """The call is over."""

    type: Literal["call.ended"] = "call.ended"
    reason: str = "ended"


class EndCall(Event):
    """Ends the call once everything said so far has been heard."""

    type: Literal["call.end"] = "call.end"
    reason: str = "agent_ended"


class TransferCall(Event):
    """Asks the transport to pass the caller on to a telephone number.

    ``CallActionCompleted`` or ``CallActionFailed`` answers it.
    """

    type: Literal["call.transfer"] = "call.transfer"
    target_phone_number: str


class CallActionCompleted(Event):
    """The transport has done what ``TransferCall`` or ``DTMFOutput`` asked for."""

    type: Literal["call.action_completed"] = "call.action_completed"
    action: CallAction


class CallActionFailed(Event):
    """What ``TransferCall`` or ``DTMFOutput`` asked for was not done, as far as is known."""

    type: Literal["call.action_failed"] = "call.action_failed"
    action: CallAction
    reason: str
    """Why, in a few words for the model and for people: the line cannot do it, the transport's own
    words, the class of what it raised, or that it took too long."""


class ControlRequested(Event):
    """Somebody uses a verb on the work of the call; ``call.handle`` publishes it."""

    type: Literal["call.control"] = "call.control"
    verb: Verb
    text: str = ""
    """The new instruction of ``redirect``, the note of ``resume``; else empty."""


class TurnEnded(Event):
    """A turn is over: all of it was heard, or it was cut; exactly one for each turn."""

    type: Literal["call.turn_ended"] = "call.turn_ended"
    turn: int
    agent: str
    outcome: Outcome
    generated: str = ""
    heard: str = ""
    capped: str = ""
    """Which cap ended it, for the outcome ``capped``; else empty."""


class CapWarning(Event):
    """A turn has used four fifths of one of its caps; once for each cap of a turn."""

    type: Literal["call.cap_warning"] = "call.cap_warning"
    turn: int
    which: str
    used: float
    limit: float


class InputReturned(Event):
    """Input that waited behind a turn is given back, as that was cancelled; it is not answered."""

    type: Literal["call.input_returned"] = "call.input_returned"
    content: str
    """What the user said, for the box that it was typed in."""


class LongRunning(Event):
    """A turn has been at work for a while; once for each turn."""

    type: Literal["call.long_running"] = "call.long_running"
    turn: int
    elapsed_s: float
    phase: TurnPhase


class EmergencyStop(Event):
    """Stops everything the agent says and does, past every condition."""

    type: Literal["call.emergency_stop"] = "call.emergency_stop"
    reason: str = ""


class StateChanged(Event):
    """The call's state changed."""

    type: Literal["call.state_changed"] = "call.state_changed"
    state: CallState
    number: int
    """Rises by one with each change of the call."""


class LogMetric(Event):
    """A number worth keeping, for the transport's or the operator's books."""

    type: Literal["call.metric"] = "call.metric"
    name: str
    value: float | int | str | bool
    unit: str = ""
