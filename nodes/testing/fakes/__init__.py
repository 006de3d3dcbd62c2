"""Fakes of vendors' services: they send what the vendors send, and fail as you tell them to.

async with FakeDeepgramFlux("a large latte").open() as vendor:
    ear = DeepgramFlux(api_key="any", url="ws://fake", dial=vendor.dial)
"""

from ._anthropic import FakeAnthropic as FakeAnthropic
from ._assemblyai import FakeAssemblyAIEar as FakeAssemblyAIEar
from ._azure import FakeAzureChat as FakeAzureChat
from ._cartesia import FakeCartesiaEar as FakeCartesiaEar
from ._cartesia import FakeCartesiaVoice as FakeCartesiaVoice
from ._deepgram import FakeDeepgramFlux as FakeDeepgramFlux
from ._deepgram import FakeDeepgramNova as FakeDeepgramNova
from ._deepgram_voice import FakeDeepgramAura as FakeDeepgramAura
from ._deepgram_voice import FakeDeepgramFluxVoice as FakeDeepgramFluxVoice
from ._elevenlabs import FakeElevenLabsEar as FakeElevenLabsEar
from ._elevenlabs import FakeElevenLabsVoice as FakeElevenLabsVoice
from ._fake_chat import FakeChat as FakeChat
from ._fake_chat import FakeOpenAIChat as FakeOpenAIChat
from ._fake_ear import FakeEar as FakeEar
from ._fake_ear import FakeTurn as FakeTurn
from ._fake_vendor import FakeLine as FakeLine
from ._fake_vendor import FakeVendor as FakeVendor
from ._fake_voice import FakeVoice as FakeVoice
from ._fake_voice import VoiceRequest as VoiceRequest
from ._fault import Fault as Fault
from ._fault import FaultKind as FaultKind
from ._fault import FaultStage as FaultStage
from ._memory_stream import MemoryStream as MemoryStream
from ._memory_stream import memory_stream_pair as memory_stream_pair
from ._openai_ear import FakeOpenAIEar as FakeOpenAIEar
from ._openai_realtime import FakeOpenAIRealtime as FakeOpenAIRealtime
from ._openai_realtime import RealtimeCall as RealtimeCall
from ._openai_realtime import RealtimeConversation as RealtimeConversation
from ._openai_realtime import RealtimeItem as RealtimeItem
from ._openai_voice import FakeOpenAIVoice as FakeOpenAIVoice
from ._provider_fields import FakeGeminiChat as FakeGeminiChat
from ._provider_fields import FakeReasoningChat as FakeReasoningChat
from ._rime import FakeRimeVoice as FakeRimeVoice
from ._soniox import FakeSonioxEar as FakeSonioxEar
from ._transcription import FakeTranscription as FakeTranscription

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
