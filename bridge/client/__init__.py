"""A caller in Python: speaks, hears and types over the native protocol."""

from ..audio.fades import Fade as Fade
from ..audio.loudspeaker import HeardAudio as HeardAudio
from ..protocol import AgentFrame as AgentFrame
from ..protocol import Clear as Clear
from ..protocol import Cut as Cut
from ..protocol import Description as Description
from ..protocol import Ended as Ended
from ..protocol import ErrorMessage as ErrorMessage
from ..protocol import Hello as Hello
from ..protocol import Hold as Hold
from ..protocol import OtherEvent as OtherEvent
from ..protocol import Pong as Pong
from ..protocol import Resumed as Resumed
from ..protocol import Seen as Seen
from ..protocol import ServerMessage as ServerMessage
from ..protocol import SnapshotMessage as SnapshotMessage
from ..protocol import Spoken as Spoken
from ..protocol import State as State
from ..protocol import Transcript as Transcript
from ..protocol import UtteranceEnd as UtteranceEnd
from ..protocol import VerbReceipt as VerbReceipt
from ..protocol import VerbSettled as VerbSettled
from ..protocol import Watching as Watching
from ._call_records import CallOverError as CallOverError
from ._call_records import ReceivedAudio as ReceivedAudio
from ._call_records import ReceivedMessage as ReceivedMessage
from ._call_records import SentSpeech as SentSpeech
from ._caller import Frames as Frames
from ._caller import NetworkCaller as NetworkCaller
from ._microphone import FRAME_S as FRAME_S
from ._open_caller import CallRefusedError as CallRefusedError
from ._open_caller import open_caller as open_caller

__all__ = [
    "AgentFrame",
    "CallOverError",
    "CallRefusedError",
    "Clear",
    "Cut",
    "Description",
    "Ended",
    "ErrorMessage",
    "FRAME_S",
    "Fade",
    "Frames",
    "HeardAudio",
    "Hello",
    "Hold",
    "NetworkCaller",
    "OtherEvent",
    "Pong",
    "ReceivedAudio",
    "ReceivedMessage",
    "Resumed",
    "Seen",
    "SentSpeech",
    "ServerMessage",
    "SnapshotMessage",
    "Spoken",
    "State",
    "Transcript",
    "UtteranceEnd",
    "VerbReceipt",
    "VerbSettled",
    "Watching",
    "open_caller",
]
