"""Anthropic's real service: a chat."""

from __future__ import annotations

from bargein.llm import AnthropicChat

from .keys import answer_of


async def test_a_chat():
    """The model answers."""
    assert "coffee" in (await answer_of(AnthropicChat())).lower()
