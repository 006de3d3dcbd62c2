"""OpenAI's voice passes the checks of providers that need no fault."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from bargein.testing import check_voice

from .test_openai_voice import Endpoint, voice_of


@asynccontextmanager
async def open_openai(fault: Any) -> AsyncIterator[Any]:
    """Open OpenAI's voice in front of an endpoint that works."""
    voice = voice_of(Endpoint())
    async with voice.open():
        yield voice


def test_openais_voice_keeps_its_promises_wherever_it_is_cut():
    """Cancelled at each step, left early, given nothing: it works on, and nothing is left."""
    report = check_voice(
        open_openai, points=12, only=["cancel", "cancel_opening", "leave_early", "nothing"]
    )
    assert len(report.passed) == 5
