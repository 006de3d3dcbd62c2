"""The voices whose audio has no name pass the checks of providers that need no fault."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from bargein.testing import check_voice
from bargein.voices import DeepgramVoice

from .test_deepgram_voices import FakeDeepgram
from .test_openai_voice import Endpoint, voice_of


@asynccontextmanager
async def open_openai(fault: Any) -> AsyncIterator[Any]:
    """Open OpenAI's voice in front of an endpoint that works."""
    voice = voice_of(Endpoint())
    async with voice.open():
        yield voice


def opener(name: str) -> Any:
    """Return what opens a voice of Deepgram's in front of a vendor that works."""

    @asynccontextmanager
    async def open_deepgram(fault: Any) -> AsyncIterator[Any]:
        async with trio.open_nursery() as nursery:
            vendor = FakeDeepgram(nursery)
            vendor.is_flux = name.startswith("flux")
            voice = DeepgramVoice(name, api_key="k", url="ws://fake", dial=vendor.dial)
            async with voice.open():
                yield voice
            nursery.cancel_scope.cancel()

    return open_deepgram


@pytest.mark.parametrize(
    "make",
    [open_openai, opener("flux-haley-en"), opener("aura-2-thalia-en")],
    ids=["OpenAIVoice", "flux", "aura"],
)
def test_a_voice_keeps_its_promises_wherever_it_is_cut(make):
    """Cancelled at each step, left early, given nothing: it works on, and nothing is left."""
    report = check_voice(
        make, points=12, only=["cancel", "cancel_opening", "leave_early", "nothing"]
    )
    assert len(report.passed) == 5
