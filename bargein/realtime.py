"""Speech-to-speech models, which hear the caller and speak by themselves."""

from .nodes.realtime import AskRefused as AskRefused
from .nodes.realtime import AudioCommitted as AudioCommitted
from .nodes.realtime import CallAsked as CallAsked
from .nodes.realtime import CallLine as CallLine
from .nodes.realtime import ItemAdded as ItemAdded
from .nodes.realtime import RealtimeCodec as RealtimeCodec
from .nodes.realtime import RealtimeFact as RealtimeFact
from .nodes.realtime import RealtimeModel as RealtimeModel
from .nodes.realtime import RealtimeNode as RealtimeNode
from .nodes.realtime import RealtimeWithSpares as RealtimeWithSpares
from .nodes.realtime import ResponseBegan as ResponseBegan
from .nodes.realtime import ResponseOver as ResponseOver
from .nodes.realtime import SpeechGiven as SpeechGiven
from .nodes.realtime import TextGiven as TextGiven
from .nodes.vendors.openai.realtime import OpenAIRealtime as OpenAIRealtime

__all__ = [
    "AskRefused",
    "AudioCommitted",
    "CallAsked",
    "CallLine",
    "ItemAdded",
    "OpenAIRealtime",
    "RealtimeCodec",
    "RealtimeFact",
    "RealtimeModel",
    "RealtimeNode",
    "RealtimeWithSpares",
    "ResponseBegan",
    "ResponseOver",
    "SpeechGiven",
    "TextGiven",
]
