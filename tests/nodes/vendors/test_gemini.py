"""Gemini with tools: signatures of its own calls, of other models' calls, and its errors."""

from __future__ import annotations

import pytest

from bargein import ChatNode, tool
from bargein.fakes import FakeGeminiChat, FakeOpenAIChat
from bargein.fallback import Fallback
from bargein.llm import ChatModelError, GeminiChat, OpenAIChat, TextDelta
from bargein.testing import open_call

ASK = ({"role": "user", "content": "Hi"},)
CALLS = {"weather": {"city": "Rome"}}


@tool(read_only=True)
async def weather(city: str) -> str:
    """Look up the weather."""
    return f"sunny in {city}"


def gemini(vendor, model="gemini-3-pro", **given):
    given = {"base_url": "http://fake/v1beta/openai", "api_key": "s3cret"} | given
    return GeminiChat(model, transport=vendor.transport(), **given)


def answering(model):
    async def answer(call):
        call.converse(ChatNode(model, "Be brief.", tools=[weather]))

    return answer


async def test_another_models_calls_need_no_signature(autojump_clock):
    """Gemini goes on behind the calls of another model, and signs its own in the next turn."""
    async with (
        FakeOpenAIChat(calls=CALLS).open() as first,
        FakeGeminiChat(calls=CALLS).open() as vendor,
    ):
        other = OpenAIChat("m", base_url="http://other/v1", transport=first.transport())
        one = gemini(vendor)
        async with other.open(), one.open():
            async with open_call(
                answering(Fallback(other, one)), audio=False, expect_errors=True
            ) as caller:
                await caller.says("Rome?", takes_s=0)
                await caller.quiet()
                first.refusal = lambda head: (503, {})
                await caller.says("And now?", takes_s=0)
                await caller.quiet()
            assert caller.heard.count("Two lattes") == 2
        signatures = [
            call["extra_content"]["google"]["thought_signature"]
            for message in vendor.requests[-1]["messages"]
            for call in message.get("tool_calls") or ()
        ]
    assert signatures[0] == "skip_thought_signature_validator"
    assert signatures[1] not in ("", signatures[0])


async def test_older_models_get_no_signature_they_did_not_send(autojump_clock):
    """Gemini 2 checks none, and may not know what stands for one."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = [*ASK, {"role": "assistant", "content": None, "tool_calls": [call]}]
    chat += [{"role": "tool", "tool_call_id": "a", "content": "ok"}, *ASK]
    for name, has_mark in (("gemini-2.5-flash", False), ("models/gemini-3-pro", True)):
        async with FakeGeminiChat().open() as vendor:
            model = gemini(vendor, name)
            async with model.open():
                assert [p async for p in model.stream(chat)]
        (sent,) = vendor.requests[0]["messages"][1]["tool_calls"]
        assert ("extra_content" in sent) is has_mark


async def test_errors_come_in_a_list(autojump_clock):
    """Google's words are in the error, and a passing one is tried again."""

    class Failing(FakeGeminiChat):
        def refusal(self, head):
            told = {"code": 429, "message": "Quota exceeded", "status": "RESOURCE_EXHAUSTED"}
            self.count = getattr(self, "count", 0) + 1
            return (429, [{"error": told}]) if self.count < 2 else super().refusal(head)

    async with Failing().open() as vendor:
        model = gemini(vendor)
        async with model.open():
            said = "".join([p.text async for p in model.stream(ASK) if isinstance(p, TextDelta)])
    assert (said, vendor.count) == ("Two lattes, please wait.", 2)


async def test_a_missing_signature_is_told_in_googles_words(autojump_clock):
    """A chat whose signature was lost is refused once, with the vendor's text."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    chat = [*ASK, {"role": "assistant", "content": None, "tool_calls": [call]}]
    chat += [{"role": "tool", "tool_call_id": "a", "content": "ok"}]
    async with FakeGeminiChat().open() as vendor:
        model = OpenAIChat(
            "gemini-3-pro", base_url="http://fake", api_key="k", transport=vendor.transport()
        )
        async with model.open():
            with pytest.raises(ChatModelError, match="400") as caught:
                await anext(aiter(model.stream(chat)))
    assert "missing a thought_signature" in caught.value.detail
    assert (caught.value.retryable, len(vendor.requests)) == (False, 1)


def test_a_key_and_a_model_are_needed(monkeypatch):
    """Both come from the environment unless they are given; a gateway may need no key."""
    monkeypatch.delenv("GEMINI_API_KEY", raising=False)
    monkeypatch.delenv("GEMINI_MODEL", raising=False)
    with pytest.raises(ValueError, match="GEMINI_MODEL"):
        GeminiChat()
    with pytest.raises(ValueError, match="GEMINI_API_KEY"):
        GeminiChat("gemini-3-pro")
    assert GeminiChat("gemini-3-pro", base_url="http://localhost:8000/v1").base_url
    monkeypatch.setenv("GEMINI_API_KEY", "s3cret")
    monkeypatch.setenv("GEMINI_MODEL", "gemini-3-pro")
    model = GeminiChat()
    assert "s3cret" not in repr(model)
    assert "gemini-3-pro" in repr(model)
    assert "generativelanguage.googleapis.com" in repr(model)
