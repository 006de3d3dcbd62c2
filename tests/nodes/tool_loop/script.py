"""Scripted models and tools for the tests of the loop."""

from __future__ import annotations

import json

import trio

from bargein.events import ToolResult
from bargein.llm import TextDelta, ToolCallRequest, Usage
from bargein.testing import chat_problems
from bargein.tools import tool


class Script:
    """A model whose n-th answer is the n-th script; a number in it is a pause in seconds."""

    def __init__(self, *answers, usage=None):
        self.answers = answers
        self.usage = usage or Usage()
        self.asked = []
        self.asked_at_s = []
        self.open = 0

    async def stream(self, messages, *, tools=()):
        assert chat_problems(messages) == []
        self.asked.append([dict(message) for message in messages])
        self.asked_at_s.append(trio.current_time())
        self.tools = tools
        number = len(self.asked) - 1
        self.open += 1
        try:
            for piece in self.answers[number] if number < len(self.answers) else ["ok"]:
                if isinstance(piece, (int, float)):
                    await trio.sleep(piece)
                else:
                    yield TextDelta(piece) if isinstance(piece, str) else piece
            yield self.usage
        finally:
            self.open -= 1


def asks(name, id="", **arguments):
    """Return the call of a tool as a model gives it."""
    return ToolCallRequest(id or f"call_{name}", name, arguments, json.dumps(arguments))


def texts(messages, role):
    return [message["content"] for message in messages if message["role"] == role]


def results(caller):
    return {event.id: event for event in caller.events(ToolResult)}


@tool(read_only=True)
async def weather(city: str) -> str:
    """Look up the weather; takes two seconds."""
    await trio.sleep(2)
    return f"sunny in {city}"


@tool
async def nap(seconds: float) -> str:
    """Sleep."""
    await trio.sleep(seconds)
    return f"slept {seconds}"
