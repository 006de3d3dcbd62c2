"""Voices of vendors, and what a new one is made of: a codec and an address."""

from ._cartesia import CartesiaVoice as CartesiaVoice
from ._elevenlabs import ElevenLabsVoice as ElevenLabsVoice
from ._openai import OpenAIVoice as OpenAIVoice
from ._vendor_voice import VendorVoice as VendorVoice
from ._vendor_voice import VendorVoiceContext as VendorVoiceContext
from ._vendor_voice import VoiceCodec as VoiceCodec

__all__ = [
    "CartesiaVoice",
    "ElevenLabsVoice",
    "OpenAIVoice",
    "VendorVoice",
    "VendorVoiceContext",
    "VoiceCodec",
]
