"""Mistakes in the test of an agent."""

from __future__ import annotations

import bargein
from bargein import Handle
from bargein.events import AgentError, AgentResponse
from bargein.testing import Caller


async def check(caller: Caller) -> None:
    """A class that is none, or not the one that was meant."""
    # wrong: arg-type, reportArgumentType
    caller.events("agent.response")
    # wrong: arg-type, reportArgumentType
    caller.events(AgentResponse(content="Hello."))
    # wrong: arg-type, reportAssignmentType
    errors: list[AgentError] = caller.events(AgentResponse)
    # wrong: attr-defined, reportAttributeAccessIssue
    print(errors, [e.contents for e in caller.events(AgentResponse)])
    said = await caller.receives(AgentResponse)
    # wrong: attr-defined, reportAttributeAccessIssue
    print(said.message)


async def watch(handle: Handle) -> None:
    """What is watched comes in messages, which are no events."""
    async for message in handle.subscribe():
        # wrong: attr-defined, reportAttributeAccessIssue
        print(message.outcome)


def order() -> object:
    """A name that bargein does not have."""
    # wrong: attr-defined, reportAttributeAccessIssue
    return bargein.Ordr
