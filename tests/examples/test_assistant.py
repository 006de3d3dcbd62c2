"""The assistant of the examples."""

import functools
import json

import httpx2
import pytest

from bargein.events import ToolCall, ToolResult
from bargein.llm import OpenAIChat
from bargein.testing import open_call

from .conftest import heard, say


@pytest.fixture(autouse=True)
def _no_model_outside(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"):
        monkeypatch.delenv(name, raising=False)


async def test_a_quick_tool_answers(example, autojump_clock):
    """A question that a tool knows is answered with what the tool returned."""
    async with open_call(example.answer) as caller:
        await caller.quiet()
        assert await say(caller, "When are you open?") == (
            "We are open from nine to six, and until noon on Saturdays."
        )


async def test_a_slow_tool_is_waited_for_aloud(example, autojump_clock):
    """The caller hears that it takes a moment, and then the result."""
    async with open_call(example.answer) as caller:
        await caller.quiet()
        told = await say(caller, "Where is parcel 417?")
    assert told == "One moment, I look for it. Parcel 417 is in Lyon, and arrives tomorrow."
    [result] = caller.events(ToolResult)
    assert (result.outcome, result.ran_s) == ("completed", pytest.approx(4.0))


async def test_who_talks_on_hears_the_result_later(example, autojump_clock):
    """A caller who talks while the tool runs is answered, and the one search goes on for them."""
    async with open_call(example.answer) as caller:
        await caller.quiet()
        await caller.says("Where is parcel 417?", takes_s=1.0)
        await caller.until(lambda c: "look for it" in c.heard)
        await caller.says("And when are you open?", takes_s=1.0)
        await caller.quiet()
        lines = heard(caller).splitlines()
    assert lines[1].startswith("One moment")
    assert lines[2:] == [
        "We are open from nine to six, and until noon on Saturdays.",
        "Parcel 417 is in Lyon, and arrives tomorrow.",
    ]
    assert [call.name for call in caller.events(ToolCall)] == ["find_parcel", "opening_hours"]


async def test_small_talk_gets_what_it_can_do(example, autojump_clock):
    """Words that ask for no tool are answered without one."""
    async with open_call(example.answer) as caller:
        await caller.quiet()
        assert (await say(caller, "Hello there.")).startswith("I can find a parcel by its number")
        assert not caller.events(ToolCall)


class Server(httpx2.AsyncBaseTransport):
    """An OpenAI-compatible server in memory, which asks for a tool and says its result."""

    def __init__(self):
        self.asked = []

    async def handle_async_request(self, request):
        self.asked.append(json.loads(await request.aread()))
        last = self.asked[-1]["messages"][-1]
        delta = {"content": last["content"]}
        if last["role"] == "user":
            function = {"name": "find_parcel", "arguments": '{"number": "418"}'}
            delta = {"tool_calls": [{"index": 0, "id": "call_1", "function": function}]}
        parts = [{"choices": [{"delta": delta}]}, {"choices": [{"delta": {}}]}]
        body = "".join(f"data: {json.dumps(part)}\n\n" for part in parts) + "data: [DONE]\n\n"
        headers = {"content-type": "text/event-stream"}
        return httpx2.Response(200, headers=headers, content=body.encode())


async def test_a_model_on_a_server_calls_the_tools(example, autojump_clock):
    """A language model instead of the stand-in gets both tools and their results."""
    server = Server()
    model = OpenAIChat("m", base_url="http://model.test/v1", transport=server)
    async with open_call(functools.partial(example.answer, model=model)) as caller:
        await caller.quiet()
        told = await say(caller, "Where is my parcel, number 418?")
    assert told == "Parcel 418 is in Lyon, and arrives tomorrow."
    names = [tool["function"]["name"] for tool in server.asked[0]["tools"]]
    assert names == ["opening_hours", "find_parcel"]
    assert server.asked[0]["messages"][0] == {"role": "system", "content": example.PROMPT}


@pytest.mark.parametrize(
    ("outside", "model"),
    [
        ({}, ""),
        (
            {"OPENAI_API_KEY": "k"},
            "OpenAIChat('gpt-4o-mini', base_url='https://api.openai.com/v1')",
        ),
        (
            {"OPENAI_BASE_URL": "http://localhost:8080/v1", "OPENAI_MODEL": "tiny"},
            "OpenAIChat('tiny', base_url='http://localhost:8080/v1')",
        ),
    ],
    ids=["offline", "a key", "a server of one's own"],
)
def test_the_environment_names_the_model(example, monkeypatch, outside, model):
    """A key or a server's address is enough; without either it works offline."""
    for name, value in outside.items():
        monkeypatch.setenv(name, value)
    chosen = example.model_named_outside()
    assert repr(chosen) == model if model else type(chosen).__name__ == "ParcelClerk"
