"""Requests, and a transport in virtual time, for the tests of the chat endpoint."""

from __future__ import annotations

import trio

from bargein.llm import OpenAIChat, TextDelta

ASK = [{"role": "user", "content": "my number is 555 0100"}]
LIMIT_S = 5.0


def chat(server, **kwargs) -> OpenAIChat:
    """A model at the test's server."""
    return OpenAIChat("tiny", base_url=server.url, api_key="k", first_wait_s=0.01, **kwargs)


async def collect(answer) -> list:
    """All pieces of an answer, within a limit."""
    with trio.fail_after(LIMIT_S):
        return [piece async for piece in answer]


def text_of(pieces) -> str:
    """The text of an answer."""
    return "".join(piece.text for piece in pieces if isinstance(piece, TextDelta))
