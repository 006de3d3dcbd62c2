"""What a model writes into its text although it is not for the caller."""

import pytest

from bargein import ChatNode
from bargein.events import AgentResponse, StateChanged
from bargein.testing import ScriptedModel, open_call

ANSWERS = {
    "whole": ["<think>They want coffee.</think>What size?"],
    "split": ["<th", "ink>They want cof", "fee.</thi", "nk>", "\n\nWhat size?"],
    "brackets": ["[THI", "NK]They want coffee.[/THINK]What size?"],
    "a tool call": ['<tool_call>{"name": "coffee"}</tool', "_call>What size?"],
    "tokens": ["<|im_start|>assist", "ant\nWhat size?<|im_", "end|>"],
}


@pytest.mark.parametrize("pieces", ANSWERS.values(), ids=ANSWERS)
async def test_it_is_neither_shown_nor_remembered(autojump_clock, pieces) -> None:
    """Thoughts, tool calls and tokens in the text of a model reach neither screen nor history."""
    model = ScriptedModel(pieces, "Fine.")

    async def answer(call):
        call.converse(ChatNode(model, "p"))

    async with open_call(answer) as caller:
        await caller.says("hello", takes_s=0.5)
        await caller.quiet()
        assert caller.heard == "What size?"
        assert "".join(each.content for each in caller.events(AgentResponse)) == "What size?"
        await caller.says("large", takes_s=0.5)
        await caller.quiet()
    assert model.requests[-1].texts("assistant") == ["What size?"]


async def test_a_thought_shows_as_thinking(autojump_clock) -> None:
    """While a model writes its thoughts, the call is thinking."""
    model = ScriptedModel(["Well. ", 1.0, "<think>They want", 2.0, " it.</think>", "What size?"])

    async def answer(call):
        call.converse(ChatNode(model, "p"))

    async with open_call(answer, audio=False) as caller:
        await caller.says("hello", takes_s=0.5)
        await caller.quiet()
        states = [each.state for each in caller.events(StateChanged)]
        assert caller.heard == "Well. What size?"
    assert states[-4:].count("thinking") >= 1


async def test_a_tag_that_is_quoted_is_text(autojump_clock) -> None:
    """A model may talk about a tag."""
    text = "Write `<think>` before it, or a < b."

    async def answer(call):
        call.converse(ChatNode(ScriptedModel(text), "p"))

    async with open_call(answer) as caller:
        await caller.says("hello", takes_s=0.5)
        await caller.quiet()
        assert caller.heard == text
