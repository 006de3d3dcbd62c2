"""The bases of fakes of vendors' services, and their faults; each vendor's room has its fakes.

async with FakeDeepgramFlux("a large latte").open() as vendor:
    ear = DeepgramFlux(api_key="any", url="ws://fake", dial=vendor.dial)
"""

from ._fake_chat import THOUGHTS as THOUGHTS
from ._fake_chat import FakeChat as FakeChat
from ._fake_chat import StreamedEvent as StreamedEvent
from ._fake_chat import signature as signature
from ._fake_chat import with_calls as with_calls
from ._fake_ear import BYTES_PER_S as BYTES_PER_S
from ._fake_ear import LATE as LATE
from ._fake_ear import Asked as Asked
from ._fake_ear import FakeEar as FakeEar
from ._fake_ear import FakeTurn as FakeTurn
from ._fake_ear import VendorMessage as VendorMessage
from ._fake_service import FLOOD_BYTES as FLOOD_BYTES
from ._fake_vendor import FakeLine as FakeLine
from ._fake_vendor import FakeVendor as FakeVendor
from ._fake_voice import CHAR_S as CHAR_S
from ._fake_voice import SAMPLE_RATE_HZ as SAMPLE_RATE_HZ
from ._fake_voice import SPEED as SPEED
from ._fake_voice import FakeVoice as FakeVoice
from ._fake_voice import VoiceRequest as VoiceRequest
from ._fake_voice import base64_of as base64_of
from ._fake_voice import pcm_of as pcm_of
from ._fault import Fault as Fault
from ._fault import FaultKind as FaultKind
from ._fault import FaultStage as FaultStage
from ._memory_stream import MemoryListener as MemoryListener
from ._memory_stream import MemoryStream as MemoryStream
from ._memory_stream import memory_stream_pair as memory_stream_pair
from .platforms import HttpRefusedError as HttpRefusedError

__all__ = [
    "FakeChat",
    "FakeEar",
    "FakeLine",
    "FakeTurn",
    "FakeVendor",
    "FakeVoice",
    "Fault",
    "HttpRefusedError",
    "MemoryListener",
    "VoiceRequest",
    "memory_stream_pair",
]
