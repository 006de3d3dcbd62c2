"""Chunks of many servers become the same pieces."""

from __future__ import annotations

import json

import pytest

from bargein.llm import AnswerProgress, ChatModelError, TextDelta, ToolCallRequest, Usage
from bargein.nodes.llm._assembler import Assembler, parse_chunk, retryable_status


def feed(assembler: Assembler, **chunk) -> list:
    """Feed one chunk as it comes over the wire."""
    return assembler.feed(parse_chunk(json.dumps(chunk).encode(), "m"))


def delta(**fields) -> dict:
    """A chunk with one delta."""
    return {"choices": [{"index": 0, "delta": fields}]}


def calls(*pieces: dict) -> list[ToolCallRequest]:
    """The tool calls that come of these pieces, each in a chunk of its own."""
    assembler = Assembler("m")
    for piece in pieces:
        told = feed(assembler, **delta(tool_calls=[piece]))
        assert all(isinstance(piece, AnswerProgress) for piece in told)
    return [piece for piece in assembler.finish() if isinstance(piece, ToolCallRequest)]


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
def test_text(content, text) -> None:
    """Text is found where servers put it, and nothing is yielded where there is none."""
    assert feed(Assembler("m"), **delta(**content)) == ([TextDelta(text)] if text else [])


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
def test_begun(chunk, begun) -> None:
    """An answer has begun once the model wrote a token, be it to itself."""
    assembler = Assembler("m")
    feed(assembler, **chunk)
    assert assembler.begun is begun


def test_second_choice_is_left_out() -> None:
    """Of several answers only the first is heard."""
    chunk = {"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]}
    assembler = Assembler("m")
    assert feed(assembler, **chunk) == []
    assert not assembler.finished


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
def test_one_call_in_pieces(pieces) -> None:
    """Pieces find their call by index, by id, or by being alone; names are not doubled."""
    (call,) = calls(*pieces)
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
def test_progress(deltas, told) -> None:
    """Each time the model turns to reasoning, and once for each call, it is told at once."""
    assembler = Assembler("m")

    def words(piece) -> str:
        if isinstance(piece, TextDelta):
            return piece.text
        assert isinstance(piece, AnswerProgress)
        return f"{piece.phase} {piece.label}".strip()

    assert [[words(p) for p in feed(assembler, **delta(**one))] for one in deltas] == told


def test_arguments_as_an_object() -> None:
    """Arguments that come as an object are as good as text."""
    (call,) = calls({"function": {"name": "f", "arguments": {"a": "é"}}})
    assert call == ToolCallRequest("call_1", "f", {"a": "é"}, '{"a": "é"}')


def test_whole_calls_under_one_index() -> None:
    """Servers that number every call 0 still make two calls of two ids."""
    first = {"index": 0, "id": "x", "function": {"name": "f", "arguments": "{}"}}
    second = {"index": 0, "id": "y", "function": {"name": "g", "arguments": "{}"}}
    assert [(call.id, call.name) for call in calls(first, second)] == [("x", "f"), ("y", "g")]


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
def test_arguments(raw, arguments) -> None:
    """Arguments that are no JSON object are None, and their text is kept."""
    (call,) = calls({"index": 0, "id": "x", "function": {"name": "f", "arguments": raw}})
    assert (call.arguments, call.raw) == (arguments, raw)


def test_call_without_a_name_is_none() -> None:
    """A call that names no tool is left out."""
    assert calls({"index": 0, "id": "x"}) == []


def test_usage() -> None:
    """Usage comes last, with what the server told and None for what it did not."""
    assembler = Assembler("m")
    feed(assembler, choices=[{"delta": {}, "finish_reason": "length"}])
    details = {"cached_tokens": 2}
    feed(assembler, usage={"prompt_tokens": 3, "prompt_tokens_details": details}, choices=None)
    assert assembler.finish() == [Usage(3, None, 2, "length")]


@pytest.mark.parametrize(
    "data", [b"", b"null", b"[]", b"{", b'{"choices": [{"delta": 3}]}', b"\xff"]
)
def test_no_chunk(data) -> None:
    """What is no chunk is an error that repeats nothing of it."""
    with pytest.raises(ChatModelError, match="is not what chat completions send") as caught:
        parse_chunk(data, "m")
    assert not caught.value.retryable


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
def test_error(error, retryable, status) -> None:
    """Reported errors keep their status, tell whether to try again, and quote 300 letters."""
    with pytest.raises(ChatModelError) as caught:
        feed(Assembler("m"), error=error)
    assert (caught.value.retryable, caught.value.status) == (retryable, status)
    assert 0 < len(caught.value.detail) <= 300


def test_retryable_status() -> None:
    """408, 409, 429 and 5xx may be tried again, and no other."""
    assert [s for s in range(400, 600) if retryable_status(s)] == [408, 409, 429, *range(500, 600)]
