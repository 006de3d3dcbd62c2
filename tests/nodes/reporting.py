"""A tool that continues in the background, and a model that reports its result."""

from __future__ import annotations

import json

import trio

from bargein.llm import TextDelta, ToolCallRequest, Usage
from bargein.testing import chat_problems
from bargein.tools import tool


class Teller:
    """A model that asks for the scripted tools first, and then tells the last line it was given."""

    def __init__(self, *calls, thinks_s=0.1):
        self.calls = [list(calls)] if calls else []
        self.thinks_s = thinks_s
        self.asked = []

    async def stream(self, messages, *, tools=()):
        assert chat_problems(messages) == []
        self.asked.append(messages)
        await trio.sleep(self.thinks_s)
        if self.calls:
            for call in self.calls.pop(0):
                yield call
        else:
            told = [m["content"] for m in messages if "background (" in (m["content"] or "")]
            words = told[-1].splitlines()[-2] if told else "nothing yet"
            yield TextDelta(f"I hear: {words}.")
        yield Usage()


def asks(name, id="", **arguments):
    """Return the call of a tool as a model gives it."""
    return ToolCallRequest(id or name, name, arguments, json.dumps(arguments))


@tool(policy="detach")
async def report(seconds: float = 5) -> str:
    """Write a report."""
    await trio.sleep(seconds)
    return f"report of {seconds:g} seconds"
