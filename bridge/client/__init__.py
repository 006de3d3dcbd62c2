"""A caller in Python: speaks, hears and types over the native protocol."""

from ._open_caller import FRAME_S as FRAME_S
from ._open_caller import AgentFrame as AgentFrame
from ._open_caller import Arrival as Arrival
from ._open_caller import Caller as Caller
from ._open_caller import CallOverError as CallOverError
from ._open_caller import CallRefusedError as CallRefusedError
from ._open_caller import Clear as Clear
from ._open_caller import Cut as Cut
from ._open_caller import Description as Description
from ._open_caller import Ended as Ended
from ._open_caller import ErrorMessage as ErrorMessage
from ._open_caller import Fade as Fade
from ._open_caller import Frames as Frames
from ._open_caller import Heard as Heard
from ._open_caller import Hello as Hello
from ._open_caller import Hold as Hold
from ._open_caller import OtherEvent as OtherEvent
from ._open_caller import Pong as Pong
from ._open_caller import Received as Received
from ._open_caller import Resumed as Resumed
from ._open_caller import Seen as Seen
from ._open_caller import ServerMessage as ServerMessage
from ._open_caller import SnapshotMessage as SnapshotMessage
from ._open_caller import Spoke as Spoke
from ._open_caller import Spoken as Spoken
from ._open_caller import State as State
from ._open_caller import Transcript as Transcript
from ._open_caller import UtteranceEnd as UtteranceEnd
from ._open_caller import VerbReceipt as VerbReceipt
from ._open_caller import VerbSettled as VerbSettled
from ._open_caller import Watching as Watching
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
