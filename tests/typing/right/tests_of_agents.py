"""The test of an agent: events have the class that was asked for."""

from __future__ import annotations

from typing import assert_type

import trio.testing

from bargein import Call
from bargein.events import AgentError, AgentResponse
from bargein.testing import open_call


async def greet(call: Call) -> None:
    call.say("Hello.")


async def check_greeting(autojump_clock: trio.testing.MockClock) -> None:
    async with open_call(greet) as caller:
        await caller.quiet()
        assert_type(await caller.receives(AgentResponse), AgentResponse)
    assert_type(caller.events(AgentError), list[AgentError])
    assert [event.content for event in caller.events(AgentResponse)] == ["Hello."]
