"""All ears, voices and models that ship, each with the fake of its vendor, for the checks.

`python -m tests.providers` cancels behind every step, and uses each a thousand times; `make test`
tries some of both.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from types import ModuleType
from typing import Any

from bargein import ears, fakes, voices
from bargein.ears import OpenAIEar, TranscriptionService
from bargein.fakes import (
    FakeAnthropic,
    FakeAzureChat,
    FakeChat,
    FakeDeepgramAura,
    FakeDeepgramFluxVoice,
    FakeEar,
    FakeGeminiChat,
    FakeOpenAIChat,
    FakeOpenAIEar,
    FakeOpenAIRealtime,
    FakeOpenAIVoice,
    FakeTranscription,
    FakeVendor,
    FakeVoice,
    Fault,
)
from bargein.llm import AnthropicChat, AzureChat, GeminiChat, OpenAIChat
from bargein.realtime import OpenAIRealtime
from bargein.testing import (
    CheckReport,
    ProviderCheckError,
    check_ear,
    check_llm,
    check_speech_to_speech,
    check_voice,
)
from bargein.voices import DeepgramVoice, OpenAIVoice

KEY = "a key"


@asynccontextmanager
async def open_ear(ear: Any, fake: type[FakeVendor], fault: Fault | None) -> AsyncIterator[Any]:
    """Open an ear in front of its fake."""
    async with fake(fault=fault).open() as vendor:
        yield ear(api_key=KEY, base_url="ws://fake", dial=vendor.dial)


@asynccontextmanager
async def open_voice(voice: Any, fake: type[FakeVendor], fault: Fault | None) -> AsyncIterator[Any]:
    """Open a voice in front of its fake."""
    async with fake(fault=fault).open() as vendor:
        speaker = voice(api_key=KEY, base_url="ws://fake", dial=vendor.dial)
        async with speaker.open():
            yield speaker


@asynccontextmanager
async def open_model(model: Any, fake: type[FakeChat], fault: Fault | None) -> AsyncIterator[Any]:
    """Open a model in front of its fake."""
    async with fake(fault=fault).open() as endpoint:
        chat = model("any", base_url="http://fake", api_key=KEY, transport=endpoint.transport())
        async with chat.open():
            yield chat


@asynccontextmanager
async def open_azure(fault: Fault | None) -> AsyncIterator[AzureChat]:
    """Open a deployment at Azure in front of its fake."""
    async with FakeAzureChat(fault=fault).open() as endpoint:
        chat = AzureChat(
            "mine", endpoint="http://fake", api_key=KEY, transport=endpoint.transport()
        )
        async with chat.open():
            yield chat


@asynccontextmanager
async def open_http_voice(fault: Fault | None) -> AsyncIterator[Any]:
    """Open the voice that is asked over HTTP in front of its fake."""
    async with FakeOpenAIVoice(fault=fault).open() as endpoint:
        voice = OpenAIVoice(api_key=KEY, base_url="http://fake/v1", transport=endpoint.transport())
        async with voice.open():
            yield voice


@asynccontextmanager
async def open_transcription(fault: Fault | None) -> AsyncIterator[Any]:
    """Open a recogniser of whole utterances in front of a server that wants no key."""
    async with FakeTranscription(needs_key=False, fault=fault).open() as endpoint:
        service = TranscriptionService(
            "any", base_url="http://fake/v1", api_key="", transport=endpoint.transport()
        )
        async with service.open():
            yield service


@asynccontextmanager
async def open_realtime(fault: Fault | None) -> AsyncIterator[OpenAIRealtime]:
    """Open a model that hears and speaks in front of its fake."""
    answer = "One large latte with oat milk. Anything else?"
    async with FakeOpenAIRealtime(answer, words="A large latte.", fault=fault).open() as vendor:
        yield OpenAIRealtime(api_key=KEY, base_url="ws://fake/v1", dial=vendor.dial)


Made = dict[str, tuple[Any, type[FakeVendor]]]


def with_fakes(module: ModuleType, base: type[FakeVendor], *arguments: str) -> Made:
    """Return each class of a module that has a fake of its name, with that fake."""
    named = {name.removeprefix("Fake"): getattr(fakes, name) for name in fakes.__all__}
    return {
        name: (partial(getattr(module, name), *arguments), named[name])
        for name in module.__all__
        if name in named and issubclass(named[name], base)
    }


EARS: Made = {
    **with_fakes(ears, FakeEar),
    "OpenAIEarInWords": (partial(OpenAIEar, turns="none"), FakeOpenAIEar),
}
MODELS: dict[str, tuple[Any, type[FakeChat]]] = {
    "AnthropicChat": (AnthropicChat, FakeAnthropic),
    "GeminiChat": (GeminiChat, FakeGeminiChat),
    "OpenAIChat": (OpenAIChat, FakeOpenAIChat),
}
VOICES: Made = {
    **with_fakes(voices, FakeVoice, "joe"),
    "DeepgramAura": (partial(DeepgramVoice, "aura-2-thalia-en"), FakeDeepgramAura),
    "DeepgramFluxVoice": (partial(DeepgramVoice, "flux-haley-en"), FakeDeepgramFluxVoice),
}

NOT_OF_MODELS = ("late", "backwards", "deaf")

SKIPPED = {
    "AnthropicChat": NOT_OF_MODELS,
    "AzureChat": NOT_OF_MODELS,
    "GeminiChat": NOT_OF_MODELS,
    "OpenAIChat": NOT_OF_MODELS,
    "CartesiaEar": ("backwards",),  # it gives no times
    "DeepgramAura": ("backwards",),  # it gives no times
    "DeepgramFluxVoice": ("backwards",),
    "OpenAIEar": ("backwards",),  # it gives no times
    "OpenAIEarInWords": ("backwards",),
    "OpenAIVoice": ("late", "error", "garbage", "backwards", "deaf"),  # its answer is sound alone
    "TranscriptionService": ("late", "error", "duplicate", "reorder", "backwards", "deaf"),
    "DeepgramNova": ("error",),  # its errors end nothing
    "ElevenLabsEar": ("late", "backwards"),  # its messages bear no number, and no times
}
"""What cannot be tried, as the vendor has no such thing."""


def checks() -> dict[str, Callable[..., CheckReport]]:
    """Return the check of each provider, by its name."""
    found: dict[str, Callable[..., CheckReport]] = {}
    for name, (ear, fake) in EARS.items():
        found[name] = partial(check_ear, partial(open_ear, ear, fake), can=fake.faults)
    found["TranscriptionService"] = partial(
        check_ear, open_transcription, can=FakeTranscription.faults
    )
    for name, (voice, fake) in VOICES.items():
        found[name] = partial(check_voice, partial(open_voice, voice, fake), can=fake.faults)
    found["OpenAIVoice"] = partial(check_voice, open_http_voice, can=FakeOpenAIVoice.faults)
    for name, (model, chat) in MODELS.items():
        found[name] = partial(check_llm, partial(open_model, model, chat), can=chat.faults)
    found["AzureChat"] = partial(check_llm, open_azure, can=FakeAzureChat.faults)
    conversing = partial(check_speech_to_speech, open_realtime, can=FakeOpenAIRealtime.faults)
    found["OpenAIRealtime"] = conversing
    found["OpenAIRealtimeToldTurns"] = partial(conversing, hears=False)
    return found


def main() -> int:
    """Run all checks in full, and return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m tests.providers", description=__doc__)
    parser.add_argument("--only", action="extend", nargs="+", choices=[*checks()])
    parser.add_argument("--seed", help="ignored: everything is tried")
    options = parser.parse_args()
    failed = 0
    for name, check in checks().items():
        if options.only is None or name in options.only:
            try:
                report = check()
            except ProviderCheckError as error:
                failed, report = 1, error.report
            print(f"{name}: {report}", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
