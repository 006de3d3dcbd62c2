"""A whole answer of an OpenAI-compatible server, and how the client is made."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import trio

from bargein.llm import (
    AnswerProgress,
    ChatModel,
    ChatModelExtraError,
    HttpLimits,
    OpenAIChat,
    TextDelta,
    ToolCallRequest,
    Usage,
)

from .asking import ASK, LIMIT_S, chat, collect, text_of

# --- a whole answer -------------------------------------------------------------------------------


async def test_streams_text_then_usage(server) -> None:
    """An answer is its text, as it comes, and one Usage at the end."""
    server.script = lambda x: x.answer("Hel", "lo", "!")
    model = chat(server, options={"temperature": 0.1, "stream_options": None})
    assert isinstance(model, ChatModel)
    async with model.open():
        pieces = await collect(model.stream(ASK, tools=[{"type": "function"}]))
    assert pieces == [
        TextDelta("Hel"),
        TextDelta("lo"),
        TextDelta("!"),
        Usage(7, 3, None, "stop"),
    ]
    sent = server.requests[0]
    assert sent.head.startswith("POST /v1/chat/completions")
    assert "authorization: bearer k" in sent.head.lower()
    assert sent.body == {
        "model": "tiny",
        "messages": ASK,
        "stream": True,
        "tools": [{"type": "function"}],
        "temperature": 0.1,
    }


async def test_tokens_come_as_they_are_sent(server) -> None:
    """A token is yielded when it arrives, not when the answer is complete."""
    go_on = trio.Event()

    async def script(x) -> None:
        await x.begin()
        await x.text("first")
        await go_on.wait()
        await x.text("second")
        await x.finish()

    server.script = script
    model = chat(server)
    async with model.open():
        answer = model.stream(ASK)
        with trio.fail_after(LIMIT_S):
            assert await anext(answer) == TextDelta("first")
        go_on.set()
        assert text_of(await collect(answer)) == "second"


async def test_connection_is_used_again(server) -> None:
    """Whole answers, refusals that were read and prewarm all leave their connection to the next."""

    async def script(x) -> None:
        if x.head.startswith("HEAD"):
            await x.refuse("404 Not Found")
        elif len(server.requests) == 2:
            await x.refuse("503 Busy", b"{}")
        else:
            await x.answer("ok")

    server.script = script
    model = chat(server)
    async with model.open():
        with trio.fail_after(LIMIT_S):
            await model.prewarm()
        assert server.connections == 1
        for _ in range(2):
            assert text_of(await collect(model.stream(ASK))) == "ok"
    assert server.connections == 1
    assert len(server.requests) == 4


async def test_tool_calls_in_pieces(server) -> None:
    """Tool calls are put together from their pieces and yielded once the answer is whole."""

    def piece(index, **call):
        return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, **call}]}}]}

    async def script(x) -> None:
        await x.begin()
        await x.text("One moment. ")
        await x.event(piece(0, id="a", function={"name": "add", "arguments": ""}))
        await x.event(piece(0, function={"arguments": '{"item": "la'}))
        await x.event(piece(1, id="b", function={"name": "pay", "arguments": "{oops"}))
        await x.event(piece(0, function={"arguments": 'tte"}'}))
        await x.finish("tool_calls")

    server.script = script
    model = chat(server)
    async with model.open():
        pieces = await collect(model.stream(ASK))
    assert pieces == [
        TextDelta("One moment. "),
        AnswerProgress("tool_call", "add"),
        AnswerProgress("tool_call", "pay"),
        ToolCallRequest("a", "add", {"item": "latte"}, '{"item": "latte"}'),
        ToolCallRequest("b", "pay", None, "{oops"),
        Usage(7, 3, None, "tool_calls"),
    ]


async def test_what_the_model_is_at_is_told_at_once(server) -> None:
    """Reasoning and a tool call are reported with their first piece, before they are complete."""
    go_on = trio.Event()

    async def script(x) -> None:
        await x.begin()
        await x.event({"choices": [{"index": 0, "delta": {"reasoning": "Hm"}}]})
        function = {"name": "add", "arguments": "{"}
        call = {"index": 0, "id": "a", "function": function}
        await x.event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        await go_on.wait()
        call = {"index": 0, "function": {"arguments": "}"}}
        await x.event({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        await x.finish("tool_calls")

    server.script = script
    model = chat(server)
    async with model.open():
        answer = model.stream(ASK)
        with trio.fail_after(LIMIT_S):
            assert await anext(answer) == AnswerProgress("thinking")
            assert await anext(answer) == AnswerProgress("tool_call", "add")
        go_on.set()
        pieces = await collect(answer)
    assert pieces == [ToolCallRequest("a", "add", {}, "{}"), Usage(7, 3, None, "tool_calls")]


async def test_answer_that_is_not_streamed(server) -> None:
    """A server that ignores `stream` is understood all the same."""
    body = json.dumps(
        {
            "choices": [
                {
                    "message": {
                        "content": "Hi.",
                        "tool_calls": [{"id": "t", "function": {"name": "f", "arguments": "{}"}}],
                    },
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 2},
        }
    ).encode()
    server.script = lambda x: x.refuse("200 OK", body, "content-type: application/json\r\n")
    model = chat(server)
    async with model.open():
        pieces = await collect(model.stream(ASK))
    assert pieces == [
        TextDelta("Hi."),
        AnswerProgress("tool_call", "f"),
        ToolCallRequest("t", "f", {}, "{}"),
        Usage(1, 2, None, "stop"),
    ]


async def test_odd_event_streams(server) -> None:
    """Comments, CR LF, data over several lines and a missing last blank line are all understood."""

    async def script(x) -> None:
        await x.begin()
        await x.part(b": hold the line\r\n\r\nevent: message\r\ndata: {\r\n")
        await x.part(b'data: "choices": [{"delta": {"content": "caf')
        await x.part("é".encode()[:1])
        await x.part("é".encode()[1:] + b'"}, "finish_reason": "stop"}]}\r\n\r')
        await x.part(b"\ndata: [DONE]\n")
        await x.raw(b"0\r\n\r\n")

    server.script = script
    model = chat(server)
    async with model.open():
        assert await collect(model.stream(ASK)) == [TextDelta("café"), Usage(finish_reason="stop")]


async def test_server_that_keeps_the_stream_open(server) -> None:
    """An answer ends with its last event, also when the server forgets to end the message."""

    async def script(x) -> None:
        await x.begin()
        await x.text("ok")
        await x.part(b"data: [DONE]\n\n")
        await x.until_eof()

    server.script = script
    model = chat(server)
    async with model.open():
        assert text_of(await collect(model.stream(ASK))) == "ok"


# --- made -----------------------------------------------------------------------------------------


def test_settings_from_the_environment(monkeypatch) -> None:
    """Model, base URL and key come from the environment where no argument names them."""
    monkeypatch.setenv("OPENAI_MODEL", "from-env")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://env.test/v1/")
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    assert repr(OpenAIChat()) == "OpenAIChat('from-env', base_url='http://env.test/v1')"
    assert OpenAIChat("mine", base_url="http://x").base_url == "http://x"


def test_settings_that_miss_something(monkeypatch) -> None:
    """What is missing is an error when the model is made, with the fix in its message."""
    for name in ("OPENAI_MODEL", "OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="OPENAI_MODEL"):
        OpenAIChat()
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        OpenAIChat("m")
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000")
    with pytest.raises(ValueError, match="OPENAI_BASE_URL is 'localhost:8000'; write a whole URL"):
        OpenAIChat("m")
    with pytest.raises(ValueError, match=r"attempts=\) is a whole number from 1, not 0"):
        HttpLimits(attempts=0)
    with pytest.raises(ValueError, match=r"first_token_timeout_s=\) is a number above 0, or None"):
        HttpLimits(first_token_timeout_s=-1)


def test_the_extra_is_missing(monkeypatch) -> None:
    """Without httpx2, the error comes where the model is configured, and names the extra."""
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ChatModelExtraError, match=r'pip install "bargein\[llm\]"'):
        OpenAIChat("m", base_url="http://model.test/v1")


def test_configuring_a_model_loads_what_its_requests_need() -> None:
    """The transport is imported with the first model, and not on the event loop of a call."""
    program = """
import sys
from bargein.llm import OpenAIChat
OpenAIChat("m", base_url="http://model.test/v1")
loaded = set(sys.modules)
import trio
async def main():
    model = OpenAIChat("m", base_url="http://127.0.0.1:9")
    async with model.open():
        await model.prewarm()
trio.run(main)
print([name for name in set(sys.modules) - loaded if name.startswith(("http", "anyio"))])
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.stdout.splitlines()[-1:] == ["[]"], told.stderr
