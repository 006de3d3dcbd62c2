"""Servers that end an answer carelessly, refuse slowly, or are not chat endpoints."""

from __future__ import annotations

import pytest
import trio

from bargein.llm import ChatModelError, ToolCallRequest, Usage

from .asking import ASK, chat, collect, text_of


@pytest.mark.parametrize("says_done", [True, False])
async def test_a_connection_that_breaks_behind_a_whole_answer_costs_nothing(
    server, says_done
) -> None:
    """An answer with a finish reason is complete and does not fail."""
    call = {"index": 0, "id": "a", "function": {"name": "pay", "arguments": "{}"}}

    async def script(x) -> None:
        await x.begin()
        await x.text("Done.")
        await x.event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        await x.event({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
        if says_done:
            await x.part(b"data: [DONE]\n\n")
        await x.stream.aclose()  # without the last chunk of HTTP

    server.script = script
    model = chat(server)
    async with model.open():
        pieces = await collect(model.stream(ASK))
    assert text_of(pieces) == "Done."
    assert isinstance(pieces[-2], ToolCallRequest)
    assert isinstance(pieces[-1], Usage)
    assert len(server.requests) == 1


@pytest.mark.parametrize("how", ["torn", "hangs"])
async def test_a_refusal_keeps_its_status_without_its_body(server, how) -> None:
    """A bad key is reported as such even if the body breaks off or never comes."""

    async def script(x) -> None:
        await x.raw(b"HTTP/1.1 401 No\r\ncontent-length: 100\r\n\r\n{")
        if how == "torn":
            await x.stream.aclose()
        else:
            await x.until_eof()

    server.script = script
    model = chat(server, first_token_timeout_s=4.0)
    async with model.open():
        with pytest.raises(ChatModelError, match=r"401.*check api_key=") as caught:
            await collect(model.stream(ASK))
    assert (caught.value.status, caught.value.retryable) == (401, False)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("head", "body", "match"),
    [
        ("200 OK\r\ncontent-type: text/html; charset=utf-8", b"<html>Hi</html>", "base_url="),
        ("307 Temporary Redirect\r\nlocation: https://elsewhere/v1", b"", "base_url="),
        ("405 Method Not Allowed", b"", "base_url="),
    ],
)
async def test_an_address_that_is_no_chat_endpoint_is_named(server, head, body, match) -> None:
    """A web page, or an address that moved, is a wrong base URL: it is asked once, and told."""

    async def script(x) -> None:
        length = f"\r\ncontent-length: {len(body)}\r\n\r\n"
        await x.raw(b"HTTP/1.1 " + head.encode() + length.encode() + body)

    server.script = script
    model = chat(server)
    async with model.open():
        with pytest.raises(ChatModelError, match=match):
            await collect(model.stream(ASK))
    assert len(server.requests) == 1


async def test_arguments_without_end_end_the_answer(server) -> None:
    """A tool call that never ends is given up before it fills the memory."""
    piece = {"index": 0, "id": "a", "function": {"name": "pay", "arguments": "x" * 100_000}}

    async def script(x) -> None:
        await x.begin()
        with trio.move_on_after(20):
            while True:
                await x.event({"choices": [{"index": 0, "delta": {"tool_calls": [piece]}}]})

    server.script = script
    model = chat(server)
    async with model.open():
        with pytest.raises(ChatModelError, match="the call of a tool exceeds"):
            await collect(model.stream(ASK))
