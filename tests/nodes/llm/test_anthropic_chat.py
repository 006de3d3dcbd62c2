"""Anthropic's messages API, against a fake on loopback."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bargein import Call, ChatNode, tool
from bargein.events import UserStoppedSpeaking, UserTranscriptionReceived
from bargein.llm import (
    AnswerProgress,
    AnthropicChat,
    ChatModel,
    ChatModelError,
    HttpLimits,
    TextDelta,
    ToolCallRequest,
    Usage,
)
from bargein.testing import open_call

ASK = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
LIMIT_S = 5.0


def chat(server: Any, **options: Any) -> AnthropicChat:
    """Return a model at the test's server."""
    limits = HttpLimits(first_wait_s=0.01)
    return AnthropicChat("claude", base_url=server.url, api_key="k", limits=limits, **options)


async def collect(answer: Any) -> list[Any]:
    """Return all pieces of an answer, within a limit."""
    with trio.fail_after(LIMIT_S):
        return [piece async for piece in answer]


def start(**usage: int) -> dict[str, Any]:
    """Return the event that begins an answer."""
    message = {"id": "m", "type": "message", "role": "assistant", "model": "claude", "content": []}
    told = {"input_tokens": 7, "output_tokens": 1, **usage}
    ends = {"stop_reason": None, "stop_sequence": None}
    return {"type": "message_start", "message": {**message, **ends, "usage": told}}


def text(*parts: str, index: int = 0) -> list[dict[str, Any]]:
    """Return the events of a block of text."""
    block = {"type": "text", "text": ""}
    deltas = [{"type": "text_delta", "text": part} for part in parts]
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def use(name: str, *parts: str, index: int = 1) -> list[dict[str, Any]]:
    """Return the events of a block that calls a tool."""
    block = {"type": "tool_use", "id": f"toolu_{index}", "name": name, "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": part} for part in ("", *parts)]
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def stop(reason: str = "end_turn", output_tokens: int = 3) -> list[dict[str, Any]]:
    """Return the events that end an answer."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    usage = {"output_tokens": output_tokens}
    return [{"type": "message_delta", "delta": delta, "usage": usage}, {"type": "message_stop"}]


def answers(*events: Any) -> Any:
    """Return a script that sends events."""

    async def script(exchange: Any) -> None:
        await exchange.begin()
        for event in events:
            kind = event["type"].encode() if isinstance(event, dict) else b"odd"
            await exchange.part(b"event: " + kind + b"\n")
            await exchange.event(event)
        await exchange.raw(b"0\r\n\r\n")

    return script


async def test_streams_text_then_usage(server):
    """An answer is its text as it comes, and one Usage that counts what was kept as input."""
    usage = {"cache_read_input_tokens": 90, "cache_creation_input_tokens": 3}
    server.script = answers(start(**usage), {"type": "ping"}, *text("Hel", "lo"), *stop())
    model = chat(server, options={"temperature": 0.1})
    assert isinstance(model, ChatModel)
    async with model.open():
        pieces = await collect(model.stream(ASK))
    assert pieces == [TextDelta("Hel"), TextDelta("lo"), Usage(100, 3, 90, "end_turn")]
    sent = server.requests[0]
    assert sent.head.startswith("POST /v1/messages")
    assert "x-api-key: k" in sent.head.lower()
    assert "anthropic-version: 2023-06-01" in sent.head.lower()
    kept = {"cache_control": {"type": "ephemeral"}}
    assert sent.body == {
        "model": "claude",
        "max_tokens": 1024,
        "stream": True,
        "temperature": 0.1,
        "system": [{"type": "text", "text": "Be brief.", **kept}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", **kept}]}],
    }


async def test_calls_of_tools_are_joined_from_their_fragments(server):
    """A tool call is reported when it begins, and yielded whole after all text."""
    events = use("look_up", '{"wh', 'at": "tea"}')
    server.script = answers(start(), *text("One moment."), *events, *stop("tool_use"))
    model = chat(server)
    async with model.open():
        pieces = await collect(model.stream(ASK))
    assert pieces == [
        TextDelta("One moment."),
        AnswerProgress("tool_call", "look_up"),
        ToolCallRequest("toolu_1", "look_up", {"what": "tea"}, '{"what": "tea"}'),
        Usage(7, 3, None, "tool_use"),
    ]


async def test_a_chat_becomes_what_the_api_takes(server):
    """Roles take turns, the user begins, and results follow their calls as blocks."""
    server.script = answers(start(), *text("Done."), *stop())
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Do it"},
        {"role": "user", "content": "now"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": ""},
    ]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    model = chat(server, cached=False)
    async with model.open():
        await collect(model.stream(messages, tools=tools))
    body = server.requests[0].body
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant"] * 2 + ["user"]
    assert [block["text"] for block in body["messages"][2]["content"]] == ["Do it", "now"]
    used, given = body["messages"][3]["content"], body["messages"][4]["content"]
    assert used == [{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]
    assert given == [{"type": "tool_result", "tool_use_id": "c1", "content": "(nothing)"}]
    assert body["tools"] == [{"name": "f", "description": "", "input_schema": {"type": "object"}}]


async def test_an_answer_that_comes_at_once_is_read_too(server):
    """A gateway that does not stream is understood."""
    body = (
        b'{"type": "message", "content": [{"type": "text", "text": "Hi"}, {"type": "tool_use",'
        b' "id": "t", "name": "f", "input": {"a": 1}}], "stop_reason": "tool_use",'
        b' "usage": {"input_tokens": 2, "output_tokens": 4}}'
    )
    server.script = lambda x: x.refuse("200 OK", body, "content-type: application/json\r\n")
    model = chat(server)
    async with model.open():
        pieces = await collect(model.stream(ASK))
    assert [type(piece) for piece in pieces] == [
        TextDelta,
        AnswerProgress,
        ToolCallRequest,
        Usage,
    ]


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


@pytest.mark.parametrize(
    ("script", "tries", "code"),
    [
        (answers(start(), OVERLOADED), 3, "overloaded_error"),
        (answers(start(), *text("He"), OVERLOADED), 1, "overloaded_error"),
        (answers({"type": "message_start"}), 3, ""),
        (answers(start(), *text("He")), 1, ""),
        (answers(start(), [1]), 1, ""),
    ],
)
async def test_an_answer_that_breaks_off_is_an_error(server, script, tries, code):
    """An error in mid-stream, an unknown shape and a lost end are errors; only silence so far is
    asked again."""
    server.script = script
    model = chat(server)
    async with model.open():
        with pytest.raises(ChatModelError) as caught:
            await collect(model.stream(ASK))
    assert len(server.requests) == tries
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("status", "kind", "tries"),
    [
        ("400 Bad Request", "invalid_request_error", 1),
        ("401 Unauthorized", "authentication_error", 1),
        ("429 Too Many Requests", "rate_limit_error", 3),
        ("529 Overloaded", "overloaded_error", 3),
    ],
)
async def test_refusals_are_told_with_their_kind(server, status, kind, tries):
    """A refusal has its status and the vendor's word; what may pass is asked again."""
    body = f'{{"type": "error", "error": {{"type": "{kind}", "message": "about ada"}}}}'.encode()
    head = "content-type: application/json\r\n"
    server.script = lambda x: x.refuse(status, body, head)
    model = chat(server)
    async with model.open():
        with pytest.raises(ChatModelError) as caught:
            await collect(model.stream(ASK))
    assert (caught.value.status, caught.value.code) == (int(status[:3]), kind)
    assert "ada" not in caught.value.safe_text
    assert len(server.requests) == tries


async def test_an_agent_uses_a_tool_with_it(server):
    """A whole answer of an agent: the call, its result in the next request, and the text."""

    @tool
    async def look_up(what: str) -> str:
        """Look something up."""
        return f"{what} costs three euros"

    def script(exchange: Any) -> Any:
        if len(server.requests) == 1:
            return answers(start(), *use("look_up", '{"what": "tea"}'), *stop("tool_use"))(exchange)
        return answers(start(), *text("Three euros."), *stop())(exchange)

    server.script = script
    model = chat(server)

    async def answer(call: Call) -> None:
        call.converse(ChatNode(model, "Be brief.", tools=[look_up]))

    with trio.fail_after(LIMIT_S):
        async with model.open(), open_call(answer, audio=False) as caller:
            caller.publish(UserTranscriptionReceived(content="What is tea?"))
            caller.publish(UserStoppedSpeaking())
            await caller.quiet()
            assert caller.heard == "Three euros."
    result = server.requests[1].body["messages"][-1]["content"][-1]
    assert result["type"] == "tool_result"
    assert "tea costs three euros" in str(result["content"])


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"model": None}, "ANTHROPIC_MODEL"),
        ({"api_key": None}, "ANTHROPIC_API_KEY"),
        ({"max_tokens": 0}, "max_tokens=\\) is a whole number from 1"),
    ],
)
def test_what_is_missing_is_told_when_it_is_made(monkeypatch, options, problem):
    """No model, no key and wrong numbers fail before the first call."""
    for name in ("MODEL", "API_KEY", "BASE_URL"):
        monkeypatch.delenv(f"ANTHROPIC_{name}", raising=False)
    with pytest.raises(ValueError, match=problem):
        AnthropicChat(**{"model": "claude", "api_key": "k", **options})
