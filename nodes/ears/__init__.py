"""Vendors' speech recognisers, and the parts to write another one: a codec and an address."""

from ._assemblyai import AssemblyAIEar as AssemblyAIEar
from ._cartesia import CartesiaEar as CartesiaEar
from ._deepgram import DeepgramFlux as DeepgramFlux
from ._deepgram import DeepgramNova as DeepgramNova
from ._elevenlabs import ElevenLabsEar as ElevenLabsEar
from ._openai import COMMIT as COMMIT
from ._openai import CONFIGURE as CONFIGURE
from ._openai import OpenAIEar as OpenAIEar
from ._openai import append as append
from ._openai import raise_if_fatal as raise_if_fatal
from ._openai_turns import OpenAITurns as OpenAITurns
from ._openai_turns import turn_detection as turn_detection
from ._vendor_ear import EarCodec as EarCodec
from ._vendor_ear import VendorEar as VendorEar
from ._vendor_ear import VendorEarStream as VendorEarStream

__all__ = [
    "AssemblyAIEar",
    "CartesiaEar",
    "DeepgramFlux",
    "DeepgramNova",
    "EarCodec",
    "ElevenLabsEar",
    "OpenAIEar",
    "VendorEar",
    "VendorEarStream",
]
