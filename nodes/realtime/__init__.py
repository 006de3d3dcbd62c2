"""Speech-to-speech models, and the parts to write another one: an address and a codec."""

from ._protocol import AskRefused as AskRefused
from ._protocol import AudioCommitted as AudioCommitted
from ._protocol import CallAsked as CallAsked
from ._protocol import CallLine as CallLine
from ._protocol import ItemAdded as ItemAdded
from ._protocol import RealtimeCodec as RealtimeCodec
from ._protocol import RealtimeFact as RealtimeFact
from ._protocol import RealtimeModel as RealtimeModel
from ._protocol import RealtimeWithSpares as RealtimeWithSpares
from ._protocol import ResponseBegan as ResponseBegan
from ._protocol import ResponseOver as ResponseOver
from ._protocol import SpeechGiven as SpeechGiven
from ._protocol import TextGiven as TextGiven
from ._realtime_node import RealtimeNode as RealtimeNode

__all__ = [
    "AskRefused",
    "AudioCommitted",
    "CallAsked",
    "ItemAdded",
    "RealtimeCodec",
    "RealtimeFact",
    "RealtimeModel",
    "RealtimeNode",
    "ResponseBegan",
    "ResponseOver",
    "SpeechGiven",
    "TextGiven",
]
