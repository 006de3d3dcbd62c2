"""Chunks of many servers become the same pieces."""

from __future__ import annotations

import pytest

from bargein.llm import AnswerProgress, ChatModelError, TextDelta, ToolCallRequest, Usage

from .asking import ASK, chat, collect


async def answered(server, *chunks: dict) -> list:
    """Return the pieces of an answer that a server sends in these chunks, without its usage."""

    async def script(x) -> None:
        await x.begin()
        for chunk in chunks:
            await x.event(chunk)
        await x.finish()

    server.script = script
    model = chat(server, attempts=1)
    async with model.open():
        *pieces, usage = await collect(model.stream(ASK))
    assert isinstance(usage, Usage)
    return pieces


def delta(**fields) -> dict:
    """A chunk with one delta."""
    return {"choices": [{"index": 0, "delta": fields}]}


async def calls(server, *pieces: dict) -> list[ToolCallRequest]:
    """The tool calls that come of these pieces, each in a chunk of its own."""
    told = await answered(server, *(delta(tool_calls=[piece]) for piece in pieces))
    assert all(isinstance(one, AnswerProgress | ToolCallRequest) for one in told)
    return [one for one in told if isinstance(one, ToolCallRequest)]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"content": "a"}, "a"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text"}]}, "a"),
        ({"content": None, "refusal": "I cannot."}, "I cannot."),
        ({"content": ""}, ""),
        ({"role": "assistant", "unknown": [1]}, ""),
    ],
)
async def test_text(server, content, text) -> None:
    """Text is found where servers put it, and nothing is yielded where there is none."""
    assert await answered(server, delta(**content)) == ([TextDelta(text)] if text else [])


@pytest.mark.parametrize(
    ("chunk", "begun"),
    [
        (delta(role="assistant", content=""), False),
        ({"choices": [], "usage": {"prompt_tokens": 1}}, False),
        ({}, False),
        (delta(content="a"), True),
        (delta(reasoning_content="hm"), True),
        (delta(reasoning="hm"), True),
        (delta(tool_calls=[{"index": 0}]), True),
    ],
)
async def test_begun(server, chunk, begun) -> None:
    """A request is not retried after the first token, even if that is reasoning."""

    async def script(x) -> None:
        await x.begin()
        if len(server.requests) == 1:
            await x.event(chunk)
            await x.stream.aclose()
        else:
            await x.finish()

    server.script = script
    model = chat(server, attempts=2)
    async with model.open():
        if begun:
            with pytest.raises(ChatModelError):
                await collect(model.stream(ASK))
        else:
            await collect(model.stream(ASK))
    assert len(server.requests) == (1 if begun else 2)


async def test_second_choice_is_left_out(server) -> None:
    """Of several answers only the first is heard, to its own end."""
    second = {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]}
    assert await answered(server, second, delta(content="a")) == [TextDelta("a")]


@pytest.mark.parametrize(
    "pieces",
    [
        [
            {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a"'}},
            {"index": 0, "function": {"arguments": ": 1}"}},
        ],
        [
            {"index": 0, "id": "x", "function": {"name": "f", "arguments": '{"a"'}},
            {"index": 0, "id": "x", "function": {"name": "f", "arguments": ": 1}"}},
        ],
        [
            {"id": "x", "function": {"name": "f", "arguments": '{"a"'}},
            {"id": "x", "function": {"arguments": ": 1}"}},
        ],
        [
            {"index": 0, "id": "x", "function": {"name": "f"}},
            {"function": {"arguments": '{"a": 1}'}},
        ],
    ],
)
async def test_one_call_in_pieces(server, pieces) -> None:
    """Pieces find their call by index, by id, or by being alone; names are not doubled."""
    (call,) = await calls(server, *pieces)
    assert (call.id, call.name, call.arguments) == ("x", "f", {"a": 1})


def call_piece(index: int, name: str | None = None, arguments: str = "") -> dict:
    """The delta of a piece of a call; of its first one if it names the tool."""
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {"tool_calls": [{"index": index, "function": function}]}


@pytest.mark.parametrize(
    ("deltas", "told"),
    [
        pytest.param(
            [{"reasoning_content": "hm"}, {"reasoning_content": ", so"}, {"content": "Yes"}],
            [["thinking"], [], ["Yes"]],
            id="reasoning, as DeepSeek and llama.cpp send it",
        ),
        pytest.param(
            [{"content": "", "reasoning": "hm"}, {"content": "", "reasoning": "so"}],
            [["thinking"], []],
            id="reasoning, as Ollama and vLLM send it",
        ),
        pytest.param(
            [{"reasoning_content": ""}, {"reasoning": None}, {"content": "Yes"}],
            [[], [], ["Yes"]],
            id="reasoning that is empty",
        ),
        pytest.param(
            [{"reasoning": "a"}, {"content": "b"}, {"reasoning": "c"}, {"reasoning": "d"}],
            [["thinking"], ["b"], ["thinking"], []],
            id="reasoning once more after text",
        ),
        pytest.param(
            [{"reasoning": "a", "content": "b", **call_piece(0, "f")}],
            [["thinking", "b", "tool_call f"]],
            id="all at once",
        ),
        pytest.param(
            [call_piece(0, "f"), call_piece(0, None, "{}"), call_piece(1, "g"), call_piece(1, "g")],
            [["tool_call f"], [], ["tool_call g"], []],
            id="two calls in pieces",
        ),
        pytest.param(
            [call_piece(0), call_piece(0, "f"), call_piece(0, None, "{}")],
            [[], ["tool_call f"], []],
            id="a call whose name comes late",
        ),
        pytest.param(
            [{"reasoning": "a"}, call_piece(0, "f"), {"reasoning": "b"}],
            [["thinking"], ["tool_call f"], ["thinking"]],
            id="reasoning between calls",
        ),
    ],
)
async def test_progress(server, deltas, told) -> None:
    """Progress is reported at once for each stretch of reasoning and each tool call."""

    def words(piece) -> str:
        if isinstance(piece, TextDelta):
            return piece.text
        return f"{piece.phase} {piece.label}".strip()

    pieces = await answered(server, *(delta(**one) for one in deltas))
    shown = [words(piece) for piece in pieces if not isinstance(piece, ToolCallRequest)]
    assert shown == [word for one in told for word in one]


async def test_arguments_as_an_object(server) -> None:
    """Arguments that come as an object are as good as text."""
    (call,) = await calls(server, {"function": {"name": "f", "arguments": {"a": "é"}}})
    assert call == ToolCallRequest("call_1", "f", {"a": "é"}, '{"a": "é"}')


async def test_whole_calls_under_one_index(server) -> None:
    """Servers that number every call 0 still make two calls of two ids."""
    first = {"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}
    second = {"index": 0, "id": "y", "function": {"name": "g", "arguments": "{}"}}
    assert [(call.id, call.name) for call in await calls(server, first, second)] == [
        ("x", "f"),
        ("y", "g"),
    ]


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ("", {}),
        (" \n", {}),
        ("{}", {}),
        ("[1]", None),
        ("5", None),
        ('{"a": ', None),
        ("NaN", None),
    ],
)
async def test_arguments(server, raw, arguments) -> None:
    """Arguments that are not a JSON object become None, and their text is kept."""
    (call,) = await calls(
        server, {"index": 0, "id": "x", "function": {"name": "f", "arguments": raw}}
    )
    assert (call.arguments, call.raw) == (arguments, raw)


async def test_call_without_a_name_is_none(server) -> None:
    """A call that names no tool is left out."""
    assert await calls(server, {"index": 0, "id": "x"}) == []


async def test_usage(server) -> None:
    """Usage comes last, with what the server told and None for what it did not."""
    details = {"cached_tokens": 2}

    async def script(x) -> None:
        await x.begin()
        await x.event({"choices": [{"delta": {}, "finish_reason": "length"}]})
        usage = {"prompt_tokens": 3, "prompt_tokens_details": details}
        await x.event({"usage": usage, "choices": None})
        await x.part(b"data: [DONE]\n\n")
        await x.raw(b"0\r\n\r\n")

    server.script = script
    model = chat(server)
    async with model.open():
        assert await collect(model.stream(ASK)) == [Usage(3, None, 2, "length")]


async def refused(server, send) -> ChatModelError:
    """Return the error of an answer with such a part."""
    server.script = send
    model = chat(server, attempts=1)
    async with model.open():
        with pytest.raises(ChatModelError) as caught:
            await collect(model.stream(ASK))
    return caught.value


@pytest.mark.parametrize("data", [b"null", b"[]", b"{", b'{"choices": [{"delta": 3}]}', b"\xff"])
async def test_no_chunk(server, data) -> None:
    """Something that is not a chunk raises an error that does not quote it."""

    async def send(x) -> None:
        await x.begin()
        await x.part(b"data: " + data + b"\n\n")
        await x.finish()

    error = await refused(server, send)
    assert "is not what chat completions send" in str(error)
    assert not error.retryable


@pytest.mark.parametrize(
    ("error", "retryable", "status"),
    [
        ({"code": 503, "message": "x"}, True, 503),
        ({"code": 400, "message": "x"}, False, 400),
        ({"code": "rate_limit_exceeded"}, True, None),
        ({"type": "overloaded_error"}, True, None),
        ({"type": "invalid_request_error"}, False, None),
        ("x" * 1000, False, None),
    ],
)
async def test_error(server, error, retryable, status) -> None:
    """Reported errors keep their status, tell whether to try again, and quote 300 letters."""

    async def send(x) -> None:
        await x.begin()
        await x.event({"error": error})
        await x.finish()

    caught = await refused(server, send)
    assert (caught.retryable, caught.status) == (retryable, status)
    assert 0 < len(caught.detail) <= 300


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(400, False), (401, False), (404, False), (407, False), (408, True), (409, True),
     (410, False), (422, False), (428, False), (429, True), (430, False), (499, False),
     (500, True), (503, True), (599, True)],
)  # fmt: skip
async def test_retryable_status(server, status, retryable) -> None:
    """408, 409, 429 and 5xx may be tried again, and no other."""
    error = await refused(server, lambda x: x.refuse(f"{status} No"))
    assert (error.status, error.retryable) == (status, retryable)
