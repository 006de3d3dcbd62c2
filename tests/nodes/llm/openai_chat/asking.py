"""Requests, and a transport in virtual time, for the tests of the chat endpoint."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import trio

from bargein.llm import HttpLimits, OpenAIChat, TextDelta

ASK = [{"role": "user", "content": "my number is 555 0100"}]
LIMIT_S = 5.0


def limited(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a model, with those that are limits in one object."""
    limits = {f.name: kwargs.pop(f.name) for f in fields(HttpLimits) if f.name in kwargs}
    return {**kwargs, "limits": HttpLimits(**limits)}


def chat(server, **kwargs) -> OpenAIChat:
    """A model at the test's server."""
    arguments = limited({"first_wait_s": 0.01, **kwargs})
    return OpenAIChat("tiny", base_url=server.url, api_key="k", **arguments)


async def collect(answer) -> list:
    """All pieces of an answer, within a limit."""
    with trio.fail_after(LIMIT_S):
        return [piece async for piece in answer]


def text_of(pieces) -> str:
    """The text of an answer."""
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
