"""Long results and long conversations cost no call: they are bounded, and shortened once."""

from __future__ import annotations

import pytest

from bargein import ChatNode
from bargein.events import ToolResult
from bargein.llm import ChatModelError
from bargein.testing import ScriptedModel, calls, open_call
from bargein.tools import ToolDefinitionError, ToolError, tool

LONG = "x" * 400_000


async def result_of(tool_of_app) -> ToolResult:
    """What the model gets from a tool."""
    model = ScriptedModel(calls(tool_of_app.name), "Done.")

    async def answer(call) -> None:
        call.converse(ChatNode(model, "p", tools=[tool_of_app]))

    async with open_call(answer, audio=False, expect_errors=True) as caller:
        await caller.says("go", takes_s=0.5)
        await caller.quiet(within_s=30)
        [result] = caller.events(ToolResult)
        return result


async def test_a_long_result_is_bounded():
    """As for commands, its beginning and its end stay, and the model reads how much is missing."""

    @tool(read_only=True)
    async def of_loop() -> str:
        """Look."""
        return f"begin {LONG} end"

    @tool(read_only=True)
    def of_thread() -> list[str]:
        """Look."""
        return [LONG, LONG]

    @tool(read_only=True)
    async def fails() -> str:
        """Look."""
        raise ToolError(LONG)

    for one in (of_loop, of_thread, fails):
        result = await result_of(one)
        assert len(result.content) < 16_100
        assert "characters left out" in result.content
    assert (await result_of(of_loop)).content.startswith("begin x")


@pytest.mark.parametrize(("most", "length"), [(100, 160), (50_000, 50_100), (None, 400_100)])
async def test_a_tool_sets_its_own_limit(most, length):
    """Less, more, or none."""

    @tool(read_only=True, result_chars=most)
    async def look() -> str:
        """Look."""
        return LONG

    assert (most or 400_000) <= len((await result_of(look)).content) <= length


@pytest.mark.parametrize("most", [0, 99, -1, True, 1e4, "all"])
async def test_a_limit_is_a_number_of_characters(most):
    """The declaration fails where the limit is none."""
    with pytest.raises(ToolDefinitionError, match=r"result_chars= of the tool 'look'"):

        @tool(read_only=True, result_chars=most)
        async def look() -> str:
            """Look."""
            return ""


TOO_LONG = [
    ChatModelError("no", status=400, code="context_length_exceeded"),
    ChatModelError("no", status=413),
    ChatModelError("no", status=400, detail="prompt is too long: 210000 tokens > 200000 maximum"),
    ChatModelError("no", status=400, detail="This model's maximum context length is 4096 tokens"),
    ChatModelError("no", detail="request (3000) exceeds the available context size (2048 tokens)"),
]


@pytest.mark.parametrize("error", TOO_LONG, ids=lambda error: error.detail or error.code or "413")
async def test_a_conversation_that_is_too_long_is_shortened_once(autojump_clock, error):
    """The prompt and the newest words stay, and the answer comes; a second refusal fails it."""
    model = ScriptedModel("First.", "Second.", error, "Here.", error, error, then="Back.")

    async def answer(call) -> None:
        call.converse(ChatNode(model, "The prompt."))

    async with open_call(answer, audio=False, expect_errors=True) as caller:
        for words in ("one " * 2000, "two", "three", "four", "five"):
            await caller.says(words, takes_s=0.5)
            await caller.quiet()
        assert [type(one) for one in caller.errors] == [ChatModelError]
    whole, short = model.requests[2:4]
    assert len(str(short.messages)) < len(str(whole.messages)) / 2
    assert short.messages[0] == whole.messages[0]
    assert short.messages[-1] == whole.messages[-1]
    assert "Here." in caller.heard
    assert caller.heard.endswith("Back.")


async def test_another_refusal_is_not_shortened(autojump_clock):
    """A wrong key, a rate limit or a bad request is told at once."""
    for status, detail in ((401, "context length"), (429, "too many tokens"), (400, "bad tools")):
        model = ScriptedModel(ChatModelError("no", status=status, detail=detail))

        async def answer(call, model=model) -> None:
            call.converse(ChatNode(model, "p"))

        async with open_call(answer, audio=False, expect_errors=True) as caller:
            await caller.says("hello", takes_s=0.5)
            await caller.quiet()
        assert len(model.requests) == 1
