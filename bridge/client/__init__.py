"""A caller in Python: speaks, hears and types over the native protocol."""

from ..playout._fades import Fade as Fade
from ..server._connection_messages import Resumed as Resumed
from ..server._handle_messages import Description as Description
from ..server._handle_messages import SnapshotMessage as SnapshotMessage
from ..server._handle_messages import VerbReceipt as VerbReceipt
from ..server._handle_messages import VerbSettled as VerbSettled
from ..server._native_protocol import AgentFrame as AgentFrame
from ..server._native_protocol import Clear as Clear
from ..server._native_protocol import Cut as Cut
from ..server._native_protocol import Ended as Ended
from ..server._native_protocol import ErrorMessage as ErrorMessage
from ..server._native_protocol import Hello as Hello
from ..server._native_protocol import Hold as Hold
from ..server._native_protocol import OtherEvent as OtherEvent
from ..server._native_protocol import Pong as Pong
from ..server._native_protocol import ServerMessage as ServerMessage
from ..server._native_protocol import Spoken as Spoken
from ..server._native_protocol import State as State
from ..server._native_protocol import Transcript as Transcript
from ..server._native_protocol import UtteranceEnd as UtteranceEnd
from ..server._watch_messages import Seen as Seen
from ..server._watch_messages import Watching as Watching
from ._call_records import Arrival as Arrival
from ._call_records import CallOverError as CallOverError
from ._call_records import Received as Received
from ._call_records import Spoke as Spoke
from ._caller import Caller as Caller
from ._caller import Frames as Frames
from ._loudspeaker import Heard as Heard
from ._microphone import FRAME_S as FRAME_S
from ._open_caller import CallRefusedError as CallRefusedError
from ._open_caller import open_caller as open_caller

__all__ = [
    "AgentFrame",
    "Arrival",
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
    "Heard",
    "Hello",
    "Hold",
    "OtherEvent",
    "Pong",
    "Received",
    "Resumed",
    "Seen",
    "ServerMessage",
    "SnapshotMessage",
    "Spoke",
    "Spoken",
    "State",
    "Transcript",
    "UtteranceEnd",
    "VerbReceipt",
    "VerbSettled",
    "Watching",
    "open_caller",
]
