"""The test of an agent: events have the class that was asked for."""

from __future__ import annotations

from typing import assert_type

import trio.testing

import bargein
from bargein import Call, Handle, Message
from bargein.events import AgentError, AgentResponse
from bargein.testing import Caller


async def greet(call: Call) -> None:
    call.say("Hello.")


async def check_greeting(autojump_clock: trio.testing.MockClock) -> None:
    async with bargein.testing.open_call(greet) as caller:
        assert_type(caller, Caller)
        await caller.quiet()
        assert_type(await caller.receives(AgentResponse), AgentResponse)
    assert_type(caller.events(AgentError), list[AgentError])
    assert [event.content for event in caller.events(AgentResponse)] == ["Hello."]


async def watch(handle: Handle) -> None:
    async for message in handle.subscribe():
        assert_type(message, Message)
        assert_type(message.at_s, float)
        assert_type(message.source, str)
        if isinstance(message.event, AgentResponse):
            assert_type(message.event, AgentResponse)
