"""Agents that count or say nothing, and what is said of their answers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import trio
import trio.testing

from bargein import Call, Message
from bargein.events import (
    AgentResponse,
)


class Counter:
    """Says "one two three four ", a word each second."""

    name = "counter"

    async def generate(self, message: Message) -> AsyncIterator[object]:
        for word in ("one ", "two ", "three ", "four "):
            yield AgentResponse(content=word)
            await trio.sleep(1)


async def silent(call: Call) -> None:
    """An agent that says nothing by itself."""
    call.bridge(name="agent")


async def counts(call: Call) -> None:
    call.converse(Counter())
