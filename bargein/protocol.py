"""The messages of the native protocol, and their encoding, without I/O.

Use it to write a client, a gateway or a test that talks to a bargein server.  ``encode()`` encodes
a message, ``decode_server()`` parses what a server sent, and ``decode_client()`` what a client
sent.  For a complete caller on top of it, see ``bargein.client``.
"""

from .bridge.server._call_messages import AgentFrame as AgentFrame
from .bridge.server._call_messages import CallerAudio as CallerAudio
from .bridge.server._call_messages import Clear as Clear
from .bridge.server._call_messages import ClientMessage as ClientMessage
from .bridge.server._call_messages import CustomInput as CustomInput
from .bridge.server._call_messages import Cut as Cut
from .bridge.server._call_messages import ErrorMessage as ErrorMessage
from .bridge.server._call_messages import HangUp as HangUp
from .bridge.server._call_messages import Hold as Hold
from .bridge.server._call_messages import KeyPress as KeyPress
from .bridge.server._call_messages import Mute as Mute
from .bridge.server._call_messages import OtherEvent as OtherEvent
from .bridge.server._call_messages import Ping as Ping
from .bridge.server._call_messages import PlaybackReport as PlaybackReport
from .bridge.server._call_messages import PlayerSound as PlayerSound
from .bridge.server._call_messages import Pong as Pong
from .bridge.server._call_messages import ServerMessage as ServerMessage
from .bridge.server._call_messages import Spoken as Spoken
from .bridge.server._call_messages import State as State
from .bridge.server._call_messages import Stop as Stop
from .bridge.server._call_messages import Talk as Talk
from .bridge.server._call_messages import TextInput as TextInput
from .bridge.server._call_messages import Transcript as Transcript
from .bridge.server._call_messages import UtteranceEnd as UtteranceEnd
from .bridge.server._call_messages import encode as encode
from .bridge.server._connection_messages import INPUT_RATE_HZ as INPUT_RATE_HZ
from .bridge.server._connection_messages import OUTPUT_RATE_HZ as OUTPUT_RATE_HZ
from .bridge.server._connection_messages import PROTOCOL_VERSION as PROTOCOL_VERSION
from .bridge.server._connection_messages import EarlierWords as EarlierWords
from .bridge.server._connection_messages import Ended as Ended
from .bridge.server._connection_messages import Hello as Hello
from .bridge.server._connection_messages import Resume as Resume
from .bridge.server._connection_messages import Resumed as Resumed
from .bridge.server._control_messages import AnswerPermission as AnswerPermission
from .bridge.server._control_messages import AnswerQuestion as AnswerQuestion
from .bridge.server._control_messages import AskedPermission as AskedPermission
from .bridge.server._control_messages import AskedQuestion as AskedQuestion
from .bridge.server._control_messages import AskSnapshot as AskSnapshot
from .bridge.server._control_messages import CapUse as CapUse
from .bridge.server._control_messages import DescribeVerb as DescribeVerb
from .bridge.server._control_messages import Description as Description
from .bridge.server._control_messages import SnapshotMessage as SnapshotMessage
from .bridge.server._control_messages import StepOfAnswer as StepOfAnswer
from .bridge.server._control_messages import StillRunningTool as StillRunningTool
from .bridge.server._control_messages import StoppedTool as StoppedTool
from .bridge.server._control_messages import ToolAtWork as ToolAtWork
from .bridge.server._control_messages import UseVerb as UseVerb
from .bridge.server._control_messages import VerbNow as VerbNow
from .bridge.server._control_messages import VerbReceipt as VerbReceipt
from .bridge.server._control_messages import VerbSettled as VerbSettled
from .bridge.server._message_base import ErrorCode as ErrorCode
from .bridge.server._message_base import ProtocolViolationError as ProtocolViolationError
from .bridge.server._message_validation import MAX_INPUT_BYTES as MAX_INPUT_BYTES
from .bridge.server._message_validation import decode_client as decode_client
from .bridge.server._message_validation import decode_server as decode_server
from .bridge.server._watch_messages import Seen as Seen
from .bridge.server._watch_messages import Watch as Watch
from .bridge.server._watch_messages import Watching as Watching

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
