"""Gateways and servers of one's own: each vendor's class takes headers, queries and no key."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import trio

from bargein.fakes import FakeOpenAIRealtime
from bargein.realtime import OpenAIRealtime
from bargein.speech import VoiceStyle
from bargein.vendors import VendorError, open_session
from tests.providers import EARS, VOICES

OURS = {"headers": {"X-Team": "blue"}, "query": {"deployment": "a b", "tier": "2"}}


async def requests_of(name: str, key: str | None, url: str) -> list[Any]:
    """Return the requests of a vendor's class for its WebSocket."""
    seen: list[Any] = []
    make, fake = (
        (OpenAIRealtime, FakeOpenAIRealtime) if name == "OpenAIRealtime" else (EARS | VOICES)[name]
    )

    class Gateway(fake):
        def admit(self, request):
            seen.append(request)
            return

    async with Gateway().open() as gateway:
        settings = OURS if key is None else {**OURS, "api_key": key}
        made = make(base_url=url, dial=gateway.dial, **settings)
        with trio.move_on_after(2), suppress(VendorError):
            if name in EARS:
                async with made.open_stream() as stream:
                    await stream.send(bytes(3200))
                    await stream.receive()
            elif name in VOICES:
                async with made.open(), made.open_context(VoiceStyle()) as context:
                    await context.send("Hello.")
                    await context.flush()
                    await context.receive()
            else:
                async with open_session(made.address, made.limits, dial=made.dial) as session:
                    await session.receive()
    return seen


@pytest.mark.parametrize("name", [*EARS, *VOICES, "OpenAIRealtime"])
async def test_headers_and_queries_join_those_of_the_vendor(autojump_clock, name):
    """The query of the address and the own one stand beside what the vendor wants."""
    request = (await requests_of(name, "key", "ws://fake/base?route=eu"))[0]
    assert request.headers.get("X-Team") == "blue"
    query = parse_qs(urlsplit(request.path).query)
    assert (query["deployment"], query["tier"], query["route"]) == (["a b"], ["2"], ["eu"])


@pytest.mark.parametrize("name", [*EARS, *VOICES, "OpenAIRealtime"])
async def test_a_server_of_ones_own_needs_no_key(autojump_clock, name, monkeypatch):
    """With an address and no key, none is sent, and none is asked for."""
    for variable in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(variable)
    request = (await requests_of(name, None, "ws://fake/base"))[0]
    assert not {"Authorization", "xi-api-key", "X-API-Key"} & {*request.headers}
