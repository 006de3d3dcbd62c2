"""Vendors' voices, and the parts to write another one: a codec and an address."""

from ._cartesia import CartesiaVoice as CartesiaVoice
from ._deepgram import DeepgramVoice as DeepgramVoice
from ._elevenlabs import ElevenLabsVoice as ElevenLabsVoice
from ._openai import OpenAIVoice as OpenAIVoice
from ._timed_chunks import TimedChunks as TimedChunks
from ._vendor_voice import VendorVoice as VendorVoice
from ._voice_connection import ContextLimit as ContextLimit
from ._voice_context import VendorVoiceContext as VendorVoiceContext
from ._voice_context import VoiceCodec as VoiceCodec

__all__ = [
    "CartesiaVoice",
    "ContextLimit",
    "DeepgramVoice",
    "ElevenLabsVoice",
    "OpenAIVoice",
    "TimedChunks",
    "VendorVoice",
    "VendorVoiceContext",
    "VoiceCodec",
]
