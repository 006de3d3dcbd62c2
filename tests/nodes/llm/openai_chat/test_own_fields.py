"""A provider's own fields in streams: in pieces, before, behind or without their call."""

from __future__ import annotations

import pytest
import structlog

from bargein.llm import ToolCallRequest

from ..kept import kept
from .asking import chat, collect
from .test_streams_of_other_servers import called, piece, sent


def signed(text, **more) -> dict:
    """A piece of a call with Gemini's signature."""
    return piece(extra_content={"google": {"thought_signature": text}}, **more)


async def returned(server, *chunks):
    """The message that a model sends back with the calls that came in chunks."""
    pieces = await sent(server, *chunks)
    model = chat(server)
    async with model.open():
        await collect(model.stream([{"role": "user", "content": "Hi"}, *kept(pieces)]))
    return server.requests[-1].body["messages"][1]


HEAD = {"index": 0, "id": "a", "name": "f"}
OTHER = piece("{}", index=1, id="b", name="g")


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([called(signed("S", arguments="{}", **HEAD))], ["S"]),
        ([called(signed("S", arguments="{}", **HEAD), OTHER)], ["S", None]),
        ([called(signed("S", index=0)), called(piece("{}", **HEAD))], ["S"]),
        ([called(signed("S")), called(piece("{}", **HEAD))], ["S"]),
        ([called(signed("S")), called(piece("{}", id="a", name="f"))], ["S"]),
        ([called(piece("{}", **HEAD)), called(signed("S", index=0))], ["S"]),
        ([called(piece("{}", **HEAD)), called(signed("S"))], ["S"]),
        ([called(piece("{}", **HEAD)), called(signed("S", index=7))], ["S"]),
        ([called(piece("{}", **HEAD)), called(OTHER), called(signed("S", index=0))], ["S", None]),
        ([called(piece("{}", **HEAD)), called(OTHER), called(signed("S", id="a"))], ["S", None]),
        ([called(signed("AB", **HEAD)), called(signed("CD", arguments="{}", index=0))], ["ABCD"]),
        ([called(signed("S", **HEAD)), called(signed("S", arguments="{}", index=0))], ["S"]),
        ([called(signed("A", **HEAD)), called(signed("AB", arguments="{}", index=0))], ["AB"]),
        ([called(signed("S", arguments="{}", **HEAD), field="message")], ["S"]),
        ([called(piece("{}", extra_content=None, **HEAD))], [None]),
        ([called(piece("{}", extra_content="odd", **HEAD))], ["odd"]),
    ],
)
async def test_a_signature_finds_its_call(server, chunks, expected):
    """In whichever chunk it comes, it goes back with the call that it belongs to."""
    message = await returned(server, *chunks)
    found = [call.get("extra_content") for call in message["tool_calls"]]
    shown = [one["google"]["thought_signature"] if isinstance(one, dict) else one for one in found]
    assert shown == expected


async def test_a_signature_without_a_call_is_harmless(server):
    """What belongs to no call is dropped, and fails nothing."""
    text = {"choices": [{"delta": {"content": "Hi", "extra_content": {"google": {"x": 1}}}}]}
    pieces = await sent(server, text, called(signed("S", index=0)))
    assert not [one for one in pieces if isinstance(one, ToolCallRequest)]


def thought(**delta) -> dict:
    return {"choices": [{"index": 0, "delta": delta}]}


CALL = called(piece("{}", **HEAD))


@pytest.mark.parametrize(
    ("deltas", "expected"),
    [
        ([{"reasoning_content": "ha"}, {"reasoning_content": "ha"}], {"reasoning_content": "haha"}),
        ([{"reasoning": "so"}], {"reasoning": "so"}),
        ([{"reasoning": "so", "reasoning_content": "so"}], {"reasoning_content": "so"}),
        (
            [{"reasoning_content": "\ud83d"}, {"reasoning_content": "\ude00"}],
            {"reasoning_content": "😀"},
        ),
        ([{"reasoning_content": "a\ud83d"}], {"reasoning_content": "a�"}),
        ([{"reasoning_content": "a\x0bb\x00"}], {"reasoning_content": "a\x0bb\x00"}),
        ([{"reasoning_content": None, "reasoning": 7, "thinking": []}], {"reasoning": 7}),
        (
            [
                {"reasoning": "I", "reasoning_details": [{"type": "t", "index": 0, "text": "I"}]},
                {"reasoning_details": [{"type": "t", "index": 0, "text": "I"}]},
                {"reasoning_details": [{"type": "t", "index": 0, "signature": "s"}]},
                {"reasoning_details": [{"type": "e", "index": 1, "data": "d", "id": "a"}, None]},
            ],
            {
                "reasoning_details": [
                    {"type": "t", "index": 0, "text": "II", "signature": "s"},
                    {"type": "e", "index": 1, "data": "d", "id": "a"},
                    None,
                ]
            },
        ),
        ([{"thinking_blocks": [{"thinking": "x"}]}], {"thinking_blocks": [{"thinking": "x"}]}),
        ([{"channel": "analysis", "annotations": [1], "obfuscation": "x"}], {}),
    ],
)
@pytest.mark.parametrize("is_behind", [False, True])
async def test_thoughts_go_back_with_the_first_call(server, deltas, expected, is_behind):
    """They are joined as they came, before or behind the call; what no server takes stays out."""
    thoughts = [thought(**delta) for delta in deltas]
    chunks = [CALL, *thoughts] if is_behind else [*thoughts, CALL]
    message = await returned(server, *chunks)
    own = {n: v for n, v in message.items() if n not in ("role", "content", "tool_calls")}
    assert own == expected


async def test_own_fields_name_a_call_by_its_id_in_the_history(server):
    """An id that had to be changed for the history is changed in the provider's fields too."""
    chunks = [
        thought(reasoning_details=[{"type": "e", "data": "d", "id": "fn.weather:0"}]),
        called(piece("{}", index=0, id="fn.weather:0", name="f")),
    ]
    pieces = await sent(server, *chunks)
    model = chat(server)
    async with model.open():
        await collect(model.stream([{"role": "user", "content": "Hi"}, *kept(pieces)]))
    (detail,) = server.requests[-1].body["messages"][1]["reasoning_details"]
    assert detail == {"type": "e", "data": "d", "id": "past_1"}


async def test_own_fields_are_bounded(server):
    """Thoughts without end are dropped with one line in the log, and the call stays."""
    with structlog.testing.capture_logs() as logs:
        thoughts = [thought(reasoning_content="x" * 50_000) for _ in range(8)]
        message = await returned(server, *thoughts, CALL)
    assert "reasoning_content" not in message
    assert [log["event"] for log in logs].count("provider_fields_too_long") == 2  # answers


async def test_fields_that_nothing_can_hold_fail_no_call(server):
    """Nesting without end, and a number that no JSON has, are left out."""
    deep: object = "x"
    for _ in range(100):
        deep = {"a": deep}
    message = await returned(server, called(piece("{}", odd=deep, nan=float("nan"), **HEAD)))
    assert "odd" not in message["tool_calls"][0]


async def test_geminis_thoughts_are_not_said(server):
    """A text that is marked as a thought is no part of the answer."""
    marked = {"content": "<b>Hm", "extra_content": {"google": {"thought": True}}}
    pieces = await sent(server, thought(**marked), thought(content="Hello"))
    assert [getattr(one, "text", getattr(one, "phase", None)) for one in pieces][:2] == [
        "thinking",
        "Hello",
    ]
