"""A call that a realtime model answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from bargein import App, Call
from bargein.fakes import FakeOpenAIRealtime
from bargein.realtime import OpenAIRealtime, RealtimeNode
from bargein.speech import Speech
from bargein.testing import Caller, open_call
from bargein.vendors import SessionLimits

PROMPT = "You sell coffee."
LONG = "one two three four five six seven eight nine ten eleven twelve"


@asynccontextmanager
async def calling(
    vendor: FakeOpenAIRealtime,
    *,
    errors: Any = False,
    audio: bool = True,
    model: dict[str, Any] | None = None,
    speech: Any = None,
    **options: Any,
) -> AsyncIterator[Caller]:
    """Open a call whose agent is the vendor's model; without `speech` it has no fillers."""
    made = OpenAIRealtime(
        api_key="s3cret",
        base_url="ws://fake/v1",
        dial=vendor.dial,
        limits=SessionLimits(attempts=3),
        **(model or {}),
    )

    async def answer(call: Call) -> None:
        call.converse(RealtimeNode(made, PROMPT, **options), name="agent")

    app = App(answer, speech=speech or Speech(fillers=None))
    async with open_call(app, own_speech=True, expect_errors=errors, audio=audio) as caller:
        await trio.sleep(0.1)
        yield caller
