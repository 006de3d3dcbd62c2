"""A caller in Python: speaks, hears and types over the native protocol."""

from ..playout._fades import Fade as Fade
from ..server._call_messages import AgentFrame as AgentFrame
from ..server._call_messages import Clear as Clear
from ..server._call_messages import Cut as Cut
from ..server._call_messages import ErrorMessage as ErrorMessage
from ..server._call_messages import Hold as Hold
from ..server._call_messages import OtherEvent as OtherEvent
from ..server._call_messages import Pong as Pong
from ..server._call_messages import ServerMessage as ServerMessage
from ..server._call_messages import Spoken as Spoken
from ..server._call_messages import State as State
from ..server._call_messages import Transcript as Transcript
from ..server._call_messages import UtteranceEnd as UtteranceEnd
from ..server._connection_messages import Ended as Ended
from ..server._connection_messages import Hello as Hello
from ..server._connection_messages import Resumed as Resumed
from ..server._control_messages import Description as Description
from ..server._control_messages import SnapshotMessage as SnapshotMessage
from ..server._control_messages import VerbReceipt as VerbReceipt
from ..server._control_messages import VerbSettled as VerbSettled
from ..server._watch_messages import Seen as Seen
from ..server._watch_messages import Watching as Watching
from ._call_records import CallOverError as CallOverError
from ._call_records import ReceivedAudio as ReceivedAudio
from ._call_records import ReceivedMessage as ReceivedMessage
from ._call_records import SentSpeech as SentSpeech
from ._caller import Caller as Caller
from ._caller import Frames as Frames
from ._loudspeaker import HeardAudio as HeardAudio
from ._microphone import FRAME_S as FRAME_S
from ._open_caller import CallRefusedError as CallRefusedError
from ._open_caller import open_caller as open_caller

__all__ = [
    "AgentFrame",
    "CallOverError",
    "CallRefusedError",
    "Caller",
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
