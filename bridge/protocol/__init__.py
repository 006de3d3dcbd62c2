"""The native protocol: its messages, their encoding, and what waits to be sent; no I/O."""

from ._call_messages import AgentFrame as AgentFrame
from ._call_messages import CallerAudio as CallerAudio
from ._call_messages import Clear as Clear
from ._call_messages import ClientMessage as ClientMessage
from ._call_messages import CustomInput as CustomInput
from ._call_messages import Cut as Cut
from ._call_messages import ErrorMessage as ErrorMessage
from ._call_messages import HangUp as HangUp
from ._call_messages import Hold as Hold
from ._call_messages import KeyPress as KeyPress
from ._call_messages import Mute as Mute
from ._call_messages import OtherEvent as OtherEvent
from ._call_messages import Ping as Ping
from ._call_messages import PlaybackReport as PlaybackReport
from ._call_messages import PlayerSound as PlayerSound
from ._call_messages import Pong as Pong
from ._call_messages import ServerMessage as ServerMessage
from ._call_messages import Spoken as Spoken
from ._call_messages import State as State
from ._call_messages import Stop as Stop
from ._call_messages import Talk as Talk
from ._call_messages import TextInput as TextInput
from ._call_messages import Transcript as Transcript
from ._call_messages import UtteranceEnd as UtteranceEnd
from ._call_messages import encode as encode
from ._connection_messages import INPUT_RATE_HZ as INPUT_RATE_HZ
from ._connection_messages import OUTPUT_RATE_HZ as OUTPUT_RATE_HZ
from ._connection_messages import PROTOCOL_VERSION as PROTOCOL_VERSION
from ._connection_messages import EarlierWords as EarlierWords
from ._connection_messages import Ended as Ended
from ._connection_messages import Hello as Hello
from ._connection_messages import Resume as Resume
from ._connection_messages import Resumed as Resumed
from ._control_messages import AnswerPermission as AnswerPermission
from ._control_messages import AnswerQuestion as AnswerQuestion
from ._control_messages import AskedPermission as AskedPermission
from ._control_messages import AskedQuestion as AskedQuestion
from ._control_messages import AskSnapshot as AskSnapshot
from ._control_messages import CapUse as CapUse
from ._control_messages import DescribeVerb as DescribeVerb
from ._control_messages import Description as Description
from ._control_messages import SnapshotMessage as SnapshotMessage
from ._control_messages import StepOfAnswer as StepOfAnswer
from ._control_messages import StillRunningTool as StillRunningTool
from ._control_messages import StoppedTool as StoppedTool
from ._control_messages import ToolAtWork as ToolAtWork
from ._control_messages import UseVerb as UseVerb
from ._control_messages import VerbNow as VerbNow
from ._control_messages import VerbReceipt as VerbReceipt
from ._control_messages import VerbSettled as VerbSettled
from ._message_base import ErrorCode as ErrorCode
from ._message_base import ProtocolViolationError as ProtocolViolationError
from ._message_validation import MAX_INPUT_BYTES as MAX_INPUT_BYTES
from ._message_validation import decode_client as decode_client
from ._message_validation import decode_server as decode_server
from ._watch_messages import Seen as Seen
from ._watch_messages import Watch as Watch
from ._watch_messages import Watching as Watching

__all__ = [
    "AgentFrame",
    "AnswerPermission",
    "AnswerQuestion",
    "AskSnapshot",
    "AskedPermission",
    "AskedQuestion",
    "CallerAudio",
    "CapUse",
    "Clear",
    "ClientMessage",
    "CustomInput",
    "Cut",
    "DescribeVerb",
    "Description",
    "EarlierWords",
    "Ended",
    "ErrorCode",
    "ErrorMessage",
    "HangUp",
    "Hello",
    "Hold",
    "INPUT_RATE_HZ",
    "KeyPress",
    "MAX_INPUT_BYTES",
    "Mute",
    "OUTPUT_RATE_HZ",
    "OtherEvent",
    "PROTOCOL_VERSION",
    "Ping",
    "PlaybackReport",
    "Pong",
    "ProtocolViolationError",
    "Resume",
    "Resumed",
    "Seen",
    "ServerMessage",
    "SnapshotMessage",
    "Spoken",
    "State",
    "StepOfAnswer",
    "StillRunningTool",
    "Stop",
    "StoppedTool",
    "PlayerSound",
    "Talk",
    "TextInput",
    "ToolAtWork",
    "Transcript",
    "UseVerb",
    "UtteranceEnd",
    "VerbNow",
    "VerbReceipt",
    "VerbSettled",
    "Watch",
    "Watching",
    "decode_client",
    "decode_server",
    "encode",
]
