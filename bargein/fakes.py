"""Fakes of vendors' services for tests, which can stall, drop, garble, reorder and refuse.

Open one, and pass its ``dial`` to an ear or a voice, or its ``transport()`` to a model.
"""

from .nodes.testing.fakes import FakeChat as FakeChat
from .nodes.testing.fakes import FakeEar as FakeEar
from .nodes.testing.fakes import FakeLine as FakeLine
from .nodes.testing.fakes import FakeTurn as FakeTurn
from .nodes.testing.fakes import FakeVendor as FakeVendor
from .nodes.testing.fakes import FakeVoice as FakeVoice
from .nodes.testing.fakes import Fault as Fault
from .nodes.testing.fakes import FaultKind as FaultKind
from .nodes.testing.fakes import FaultStage as FaultStage
from .nodes.testing.fakes import MemoryStream as MemoryStream
from .nodes.testing.fakes import VoiceRequest as VoiceRequest
from .nodes.testing.fakes import memory_stream_pair as memory_stream_pair
from .nodes.vendors.anthropic.fake import FakeAnthropic as FakeAnthropic
from .nodes.vendors.assemblyai.fake import FakeAssemblyAIEar as FakeAssemblyAIEar
from .nodes.vendors.azure.fake import FakeAzureChat as FakeAzureChat
from .nodes.vendors.cartesia.fake import FakeCartesiaEar as FakeCartesiaEar
from .nodes.vendors.cartesia.fake import FakeCartesiaVoice as FakeCartesiaVoice
from .nodes.vendors.deepgram.fake import FakeDeepgramAura as FakeDeepgramAura
from .nodes.vendors.deepgram.fake import FakeDeepgramFlux as FakeDeepgramFlux
from .nodes.vendors.deepgram.fake import FakeDeepgramFluxVoice as FakeDeepgramFluxVoice
from .nodes.vendors.deepgram.fake import FakeDeepgramNova as FakeDeepgramNova
from .nodes.vendors.elevenlabs.fake import FakeElevenLabsEar as FakeElevenLabsEar
from .nodes.vendors.elevenlabs.fake import FakeElevenLabsVoice as FakeElevenLabsVoice
from .nodes.vendors.gemini.fake import FakeGeminiChat as FakeGeminiChat
from .nodes.vendors.openai.fake_chat import FakeOpenAIChat as FakeOpenAIChat
from .nodes.vendors.openai.fake_ear import FakeOpenAIEar as FakeOpenAIEar
from .nodes.vendors.openai.fake_realtime import FakeOpenAIRealtime as FakeOpenAIRealtime
from .nodes.vendors.openai.fake_realtime import RealtimeCall as RealtimeCall
from .nodes.vendors.openai.fake_realtime import RealtimeConversation as RealtimeConversation
from .nodes.vendors.openai.fake_realtime import RealtimeItem as RealtimeItem
from .nodes.vendors.openai.fake_reasoning import FakeReasoningChat as FakeReasoningChat
from .nodes.vendors.openai.fake_transcription import FakeTranscription as FakeTranscription
from .nodes.vendors.openai.fake_voice import FakeOpenAIVoice as FakeOpenAIVoice
from .nodes.vendors.rime.fake import FakeRimeVoice as FakeRimeVoice
from .nodes.vendors.soniox.fake import FakeSonioxEar as FakeSonioxEar

__all__ = [
    "FakeAnthropic",
    "FakeAssemblyAIEar",
    "FakeAzureChat",
    "FakeCartesiaEar",
    "FakeCartesiaVoice",
    "FakeChat",
    "FakeDeepgramAura",
    "FakeDeepgramFlux",
    "FakeDeepgramFluxVoice",
    "FakeDeepgramNova",
    "FakeEar",
    "FakeElevenLabsEar",
    "FakeElevenLabsVoice",
    "FakeGeminiChat",
    "FakeLine",
    "FakeOpenAIChat",
    "FakeOpenAIEar",
    "FakeOpenAIRealtime",
    "FakeOpenAIVoice",
    "FakeReasoningChat",
    "FakeRimeVoice",
    "FakeSonioxEar",
    "FakeTranscription",
    "FakeTurn",
    "FakeVendor",
    "FakeVoice",
    "Fault",
    "FaultKind",
    "FaultStage",
    "MemoryStream",
    "RealtimeCall",
    "RealtimeConversation",
    "RealtimeItem",
    "VoiceRequest",
    "memory_stream_pair",
]
