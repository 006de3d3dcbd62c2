"""Ears of vendors, and the base class for an ear of your own.

Pass one to ``StreamingSpeech(ear, voice)``.  To add a vendor, write a codec for ``VendorEar``.
"""

from .nodes.vendors.assemblyai.ear import AssemblyAIEar as AssemblyAIEar
from .nodes.vendors.azure.transcription import AzureTranscription as AzureTranscription
from .nodes.vendors.cartesia.ear import CartesiaEar as CartesiaEar
from .nodes.vendors.deepgram.ear import DeepgramFlux as DeepgramFlux
from .nodes.vendors.deepgram.ear import DeepgramNova as DeepgramNova
from .nodes.vendors.elevenlabs.ear import ElevenLabsEar as ElevenLabsEar
from .nodes.vendors.openai.ear import OpenAIEar as OpenAIEar
from .nodes.vendors.openai.transcription import TranscriptionService as TranscriptionService
from .nodes.vendors.soniox.ear import SonioxEar as SonioxEar
from .nodes.vendors.vendor_ear import EarCodec as EarCodec
from .nodes.vendors.vendor_ear import VendorEar as VendorEar
from .nodes.vendors.vendor_ear import VendorEarStream as VendorEarStream

__all__ = [
    "AssemblyAIEar",
    "AzureTranscription",
    "CartesiaEar",
    "DeepgramFlux",
    "DeepgramNova",
    "EarCodec",
    "ElevenLabsEar",
    "OpenAIEar",
    "SonioxEar",
    "TranscriptionService",
    "VendorEar",
    "VendorEarStream",
]
