"""A provider's own fields of tool calls: they go through the history back to that provider only."""

from __future__ import annotations

import json
import logging
from contextlib import asynccontextmanager

import pytest
import structlog

from bargein import App, ChatNode
from bargein.conversations import SqliteConversations
from bargein.events import ToolCall
from bargein.fakes import FakeAnthropic, FakeGeminiChat, FakeOpenAIChat, FakeReasoningChat
from bargein.fallback import Fallback
from bargein.llm import AnthropicChat, GeminiChat, OpenAIChat, TextDelta, ToolCallRequest, Usage
from bargein.testing import open_call
from bargein.tools import tool

from ..answers_by_script import answer_with

CALLS = {"weather": {"city": "Rome"}, "clock": {"city": "Rome"}}
SECRETS = ("thought_signature", "The user wants", "reasoning_details", "redacted_thinking")


@tool(read_only=True)
async def weather(city: str) -> str:
    """Look up the weather."""
    return f"sunny in {city}"


@tool(read_only=True)
async def clock(city: str) -> str:
    """Look up the time."""
    return f"noon in {city}"


def gemini():
    return FakeGeminiChat(calls=CALLS)


def deepseek():
    return FakeReasoningChat(calls=CALLS)


def openrouter():
    return FakeReasoningChat(field="reasoning_details", calls=CALLS)


def anthropic():
    return FakeAnthropic(calls=CALLS)


def model_of(vendor, name="m", url="http://models.example.com/v1"):
    if isinstance(vendor, FakeAnthropic):
        thinking = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
        given = {"base_url": "http://fake/v1", "api_key": "k", "options": thinking}
        return AnthropicChat(name, transport=vendor.transport(), **given)
    cls = GeminiChat if isinstance(vendor, FakeGeminiChat) else OpenAIChat
    return cls(name, base_url=url, api_key="k", transport=vendor.transport())


@asynccontextmanager
async def opened(vendor, *about):
    """Open a fake and the model that asks it."""
    model = model_of(vendor, *about)
    async with vendor.open(), model.open():
        yield vendor, model


def node_of(model):
    return ChatNode(model, "Be brief.", tools=[weather, clock])


async def turn(caller, words="Rome?"):
    await caller.says(words, takes_s=0)
    await caller.quiet()


@pytest.mark.parametrize("make", [gemini, deepseek, openrouter, anthropic])
async def test_own_fields_come_back_with_the_results(autojump_clock, make):
    """A vendor that refuses a request without its own fields answers with tools, turn by turn."""
    async with opened(make()) as (vendor, model):
        async with open_call(answer_with(node_of(model)), audio=False) as caller:
            await turn(caller)
            await turn(caller, "And now?")
            assert caller.heard.count("Two lattes, please wait.") == 2
        assert len(vendor.requests) == 4


@pytest.mark.parametrize("make", [gemini, deepseek, openrouter, anthropic])
async def test_own_fields_survive_the_process(autojump_clock, tmp_path, make):
    """A stored conversation has them, and a call that resumes it gives them back."""
    file = tmp_path / "calls.db"
    for count in (1, 2):
        async with opened(make()) as (vendor, model):
            node = node_of(model)
            app = App(answer_with(node), conversations=SqliteConversations(file))
            async with open_call(app, audio=False, conversation="ann") as caller:
                await turn(caller)
            sent = json.dumps(list(vendor.requests))
            marks = [mark for mark in SECRETS if mark in sent]
            assert marks
            assert sent.count(marks[0]) == 2 * count - 1  # those of the calls before, too


@pytest.mark.parametrize("make", [gemini, deepseek, openrouter, anthropic])
async def test_nobody_else_sees_own_fields(autojump_clock, make, caplog):
    """They are in no event, history as data, request as JSON to another model, or log line."""
    caplog.set_level(logging.DEBUG)
    logs = structlog.testing.LogCapture()
    structlog.configure(processors=[logs])
    try:
        async with opened(make()) as (_, model):
            node = node_of(model)
            async with open_call(answer_with(node), audio=False) as caller:
                await turn(caller)
                called = caller.events(ToolCall)
                chat = node.context.as_chat()
                shown = [
                    *(json.dumps(event.model_dump()) + repr(event) for event in called),
                    json.dumps(caller.call.history.as_json()),
                    json.dumps(chat),
                    json.dumps(node.context.as_anthropic()),
                    repr(caller.call.history.entries),
                    repr(logs.entries),
                    caplog.text,
                ]
    finally:
        structlog.reset_defaults()
    assert len(called) == 2
    assert not [text for text in shown if any(secret in text for secret in SECRETS)]


@pytest.mark.parametrize("make", [gemini, deepseek, openrouter, anthropic])
async def test_another_provider_never_gets_them(autojump_clock, make):
    """Behind a Fallback the next model gets the calls and results, and nothing of the first's."""
    async with (
        opened(make()) as (first, one),
        opened(FakeOpenAIChat("Sunny. "), "other", "http://other.example.com/v1") as (second, two),
    ):
        model = Fallback(one, two)

        @tool(read_only=True)
        async def weather(city: str) -> str:
            """Look up the weather."""
            first.refuses = True
            return "sunny"

        first.refusal = lambda head: (503, {}) if getattr(first, "refuses", False) else None
        node = ChatNode(model, "Be brief.", tools=[weather, clock])
        async with open_call(answer_with(node), audio=False, expect_errors=True) as caller:
            await turn(caller)
            assert "Sunny." in caller.heard
        (asked,) = second.requests
        assert [call["function"]["name"] for call in asked["messages"][2]["tool_calls"]] == [
            "weather",
            "clock",
        ]
        assert not [secret for secret in SECRETS if secret in json.dumps(asked)]


async def test_thoughts_are_not_asked_for_behind_the_calls_of_another(autojump_clock):
    """Claude goes on behind another model's calls without thinking, and thinks in the next turn."""
    async with (
        opened(FakeOpenAIChat(calls=CALLS)) as (first, one),
        opened(anthropic()) as (second, two),
    ):
        first.refuses = False

        @tool(read_only=True)
        async def weather(city: str) -> str:
            """Look up the weather."""
            first.refuses = True
            return "sunny"

        first.refusal = lambda head: (503, {}) if first.refuses else None
        model = Fallback(one, two)
        node = ChatNode(model, "Be brief.", tools=[weather, clock])
        async with open_call(answer_with(node), audio=False, expect_errors=True) as caller:
            await turn(caller)
            await turn(caller, "And now?")
            assert caller.heard.count("Two lattes") == 2
        assert ["thinking" in asked for asked in second.requests] == [False, True, True]


async def test_a_model_of_ones_own_has_own_fields_too(autojump_clock):
    """It names the provider, and finds the fields in the chat; no other name finds them."""
    from bargein.llm import extra_of

    asked = []

    class Own:
        async def stream(self, messages, *, tools=()):
            asked.append(messages)
            if messages[-1]["role"] == "user":
                yield ToolCallRequest(
                    "a", "weather", {"city": "Rome"}, "", provider="own", extra={"seal": 7}
                )
            else:
                yield TextDelta("Sunny. ")
            yield Usage()

    async with open_call(answer_with(node_of(Own())), audio=False) as caller:
        await turn(caller)
    (call,) = asked[1][2]["tool_calls"]
    assert extra_of(call, "own") == {"seal": 7}
    assert extra_of(call, "other") == extra_of(dict(call), "own") == {}
    assert json.loads(json.dumps(call)) == call
