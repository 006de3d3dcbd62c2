"""The events of a voice call, one file for each side that publishes them.

Facts about the caller start with ``User``, facts about the agent with ``Agent``; the rest belong
to the call.
"""

from bargein.routes import Outcome as Outcome

from .._verbs import AnswerPhase as AnswerPhase
from .._verbs import JobEnd as JobEnd
from .._verbs import ToolOutcome as ToolOutcome
from .._verbs import Verb as Verb
from ._agent import AgentAudio as AgentAudio
from ._agent import AgentAudioComplete as AgentAudioComplete
from ._agent import AgentError as AgentError
from ._agent import AgentGenerationComplete as AgentGenerationComplete
from ._agent import AgentHandoff as AgentHandoff
from ._agent import AgentResponse as AgentResponse
from ._agent import AgentSpeechCut as AgentSpeechCut
from ._agent import AgentSpeechSent as AgentSpeechSent
from ._agent import AgentStartedSpeaking as AgentStartedSpeaking
from ._agent import AgentStaysSilent as AgentStaysSilent
from ._agent import AgentStoppedSpeaking as AgentStoppedSpeaking
from ._agent import AgentTextComplete as AgentTextComplete
from ._agent import AgentUtteranceQueued as AgentUtteranceQueued
from ._agent import HeardBasis as HeardBasis
from ._call import AnswerEnded as AnswerEnded
from ._call import AnswerStage as AnswerStage
from ._call import CallEnded as CallEnded
from ._call import CallStarted as CallStarted
from ._call import CallState as CallState
from ._call import EndCall as EndCall
from ._call import EventLoopBlocked as EventLoopBlocked
from ._call import LogMetric as LogMetric
from ._call import StageStalled as StageStalled
from ._call import StateChanged as StateChanged
from ._caller import Button as Button
from ._caller import CustomReceived as CustomReceived
from ._caller import DTMFInput as DTMFInput
from ._caller import TalkKeyChanged as TalkKeyChanged
from ._caller import UserAudio as UserAudio
from ._caller import UserStartedSpeaking as UserStartedSpeaking
from ._caller import UserStoppedSpeaking as UserStoppedSpeaking
from ._caller import UserTranscriptionReceived as UserTranscriptionReceived
from ._control import CapWarning as CapWarning
from ._control import ControlRequested as ControlRequested
from ._control import EmergencyStop as EmergencyStop
from ._control import InputReturned as InputReturned
from ._control import LongRunning as LongRunning
from ._line import AnsweredBasis as AnsweredBasis
from ._line import AnsweredBy as AnsweredBy
from ._line import CallAction as CallAction
from ._line import CallActionCause as CallActionCause
from ._line import CallActionCompleted as CallActionCompleted
from ._line import CallActionFailed as CallActionFailed
from ._line import CallerOnHold as CallerOnHold
from ._line import DTMFOutput as DTMFOutput
from ._line import PrivateInput as PrivateInput
from ._line import RecordingPaused as RecordingPaused
from ._line import RecordingResumed as RecordingResumed
from ._line import ToneHeard as ToneHeard
from ._line import TransferCall as TransferCall
from ._line import TransferProgressed as TransferProgressed
from ._line import TransferStep as TransferStep
from ._line import WhoAnswers as WhoAnswers
from ._tools import JobAnnounced as JobAnnounced
from ._tools import JobFinished as JobFinished
from ._tools import PermissionAnswered as PermissionAnswered
from ._tools import PermissionRequested as PermissionRequested
from ._tools import QuestionAsked as QuestionAsked
from ._tools import QuestionClosed as QuestionClosed
from ._tools import QuestionOutcome as QuestionOutcome
from ._tools import ToolCall as ToolCall
from ._tools import ToolOutput as ToolOutput
from ._tools import ToolProgress as ToolProgress
from ._tools import ToolResult as ToolResult
from ._voice import AgentIdle as AgentIdle
from ._voice import AgentSpeechHeld as AgentSpeechHeld
from ._voice import AgentSpeechReleased as AgentSpeechReleased
from ._voice import DecisionValue as DecisionValue
from ._voice import EarFellSilent as EarFellSilent
from ._voice import ListeningFailed as ListeningFailed
from ._voice import ListeningResumed as ListeningResumed
from ._voice import TranscriptionFailed as TranscriptionFailed
from ._voice import TurnDecided as TurnDecided
from ._voice import TurnLikelyOver as TurnLikelyOver
from ._voice import TurnScored as TurnScored
from ._voice import TurnWentOn as TurnWentOn
from ._voice import UserAway as UserAway
from ._voice import VoiceHint as VoiceHint
from ._voice import VoiceSettled as VoiceSettled
from ._voice import VoiceStarted as VoiceStarted
from ._voice import VoiceStopped as VoiceStopped
from ._voice import VoiceWords as VoiceWords
from ._words import WordTiming as WordTiming

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
    "AgentStaysSilent",
    "AgentStoppedSpeaking",
    "AgentTextComplete",
    "AgentUtteranceQueued",
    "AnswerEnded",
    "AnsweredBasis",
    "AnsweredBy",
    "Button",
    "CallAction",
    "CallActionCompleted",
    "CallActionCause",
    "CallActionFailed",
    "CallEnded",
    "CallStarted",
    "CallState",
    "CallerOnHold",
    "CapWarning",
    "ControlRequested",
    "CustomReceived",
    "DTMFInput",
    "DTMFOutput",
    "EarFellSilent",
    "EmergencyStop",
    "EndCall",
    "EventLoopBlocked",
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
    "PrivateInput",
    "QuestionAsked",
    "QuestionClosed",
    "RecordingPaused",
    "RecordingResumed",
    "StageStalled",
    "StateChanged",
    "TalkKeyChanged",
    "ToneHeard",
    "ToolCall",
    "ToolOutcome",
    "ToolOutput",
    "ToolProgress",
    "ToolResult",
    "TranscriptionFailed",
    "TransferCall",
    "TransferProgressed",
    "TransferStep",
    "TurnDecided",
    "TurnLikelyOver",
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
    "WhoAnswers",
    "WordTiming",
]
