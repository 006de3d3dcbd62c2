"""Anthropic's thoughts and server tools: read from the stream, and sent back with their call."""

from __future__ import annotations

import pytest

from bargein.llm import AnswerProgress, TextDelta, ToolCallRequest

from .kept import kept
from .test_anthropic_chat import ASK, answers, chat, collect, start, stop, text, use


def block(kind, *deltas, index=0, **fields):
    """The events of a block of Anthropic's own."""
    return [
        {"type": "content_block_start", "index": index, "content_block": {"type": kind, **fields}},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def thinking(*parts, index=0, signature="sig"):
    deltas = [{"type": "thinking_delta", "thinking": part} for part in parts]
    signed = {"type": "signature_delta", "signature": signature}
    return block("thinking", *deltas, signed, index=index, thinking="", signature="")


def search(index=1):
    """A search that Anthropic's server does by itself, and what it found."""
    asked = {"id": "srvtoolu_1", "name": "web_search", "input": {}}
    deltas = [
        {"type": "input_json_delta", "partial_json": part} for part in ("", '{"query"', ':"Rome"}')
    ]
    found = [{"type": "web_search_result", "title": "Rome", "encrypted_content": "xyz"}]
    return [
        *block("server_tool_use", *deltas, index=index, **asked),
        *block("web_search_tool_result", index=index + 1, tool_use_id="srvtoolu_1", content=found),
    ]


async def sent_back(server, *events, said=None):
    """The assistant's blocks in the request with the results of the calls in these events."""
    server.script = answers(start(), *events)
    model = chat(server)
    async with model.open():
        pieces = await collect(model.stream(ASK))
        await collect(model.stream([*ASK, *kept(pieces, said)]))
    return server.requests[-1].body["messages"][1]["content"]


async def test_the_search_of_a_server_is_no_call_of_ours(server):
    """A server's own tool shows as thinking; its arguments and results are no text and no call."""
    server.script = answers(start(), *search(0), *text("It is sunny.", index=2), *stop())
    model = chat(server)
    async with model.open():
        pieces = await collect(model.stream(ASK))
    assert pieces[:2] == [AnswerProgress("thinking"), TextDelta("It is sunny.")]
    assert not [piece for piece in pieces if isinstance(piece, ToolCallRequest)]


async def test_own_blocks_stand_where_they_stood(server):
    """Thoughts, text, a search and two calls come back in their order, whole and unchanged."""
    blocks = await sent_back(
        server,
        *thinking("Hm\x0b", "Hm\x0b", " so"),
        *block("redacted_thinking", index=1, data="d"),
        *text("Let me look.", index=2),
        *search(3),
        *use("add", '{"n": 1}', index=5),
        *thinking("And.", index=6),
        *use("add", '{"n": 2}', index=7),
        *stop("tool_use"),
        said="Let me look.",
    )
    assert [one["type"] for one in blocks] == [
        *("thinking", "redacted_thinking", "text", "server_tool_use", "web_search_tool_result"),
        *("tool_use", "thinking", "tool_use"),
    ]
    assert blocks[0] == {"type": "thinking", "thinking": "Hm\x0bHm\x0b so", "signature": "sig"}
    assert blocks[1] == {"type": "redacted_thinking", "data": "d"}
    assert blocks[3]["input"] == {"query": "Rome"}
    assert blocks[4]["content"][0]["encrypted_content"] == "xyz"


@pytest.mark.parametrize("said", [None, "Let me"])
async def test_text_that_was_not_heard_is_left_out(server, said):
    """The thoughts stay in front of the calls, with the text as far as the history has it."""
    events = [*thinking("Hm"), *text("Let me look.", index=1), *use("add", "{}", index=2)]
    blocks = await sent_back(server, *events, *stop("tool_use"), said=said)
    kinds = ["thinking", "text", "tool_use"] if said else ["thinking", "tool_use"]
    assert [one["type"] for one in blocks] == kinds


async def test_a_call_without_own_blocks_has_no_own_fields(server):
    """Text and calls are all that another API has, too."""
    server.script = answers(start(), *text("Hi"), *use("add", "{}"), *stop("tool_use"))
    model = chat(server)
    async with model.open():
        pieces = await collect(model.stream(ASK))
    (call,) = (piece for piece in pieces if isinstance(piece, ToolCallRequest))
    assert (call.provider, call.extra) == ("", {})
