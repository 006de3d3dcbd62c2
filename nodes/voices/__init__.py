"""Vendors' voices, and the parts to write another one: a codec and an address."""

from ._cartesia import CartesiaVoice as CartesiaVoice
from ._deepgram import DeepgramVoice as DeepgramVoice
from ._elevenlabs import ElevenLabsVoice as ElevenLabsVoice
from ._multi_context_voice import VendorVoice as VendorVoice
from ._multi_context_voice import VendorVoiceContext as VendorVoiceContext
from ._multi_context_voice import VoiceCodec as VoiceCodec
from ._openai import OpenAIVoice as OpenAIVoice
from ._single_context_speech import SpeakCodec as SpeakCodec
from ._single_context_voice import SocketVoice as SocketVoice
from ._voice_connection import ContextLimit as ContextLimit

__all__ = [
    "CartesiaVoice",
    "ContextLimit",
    "DeepgramVoice",
    "ElevenLabsVoice",
    "OpenAIVoice",
    "SocketVoice",
    "SpeakCodec",
    "VendorVoice",
    "VendorVoiceContext",
    "VoiceCodec",
]
