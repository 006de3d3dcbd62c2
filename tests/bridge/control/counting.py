"""An agent that counts, and what a watcher sees of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import trio

from bargein import ReasoningNode
from bargein.events import (
    AgentResponse,
)

WORDS = ["one", "two", "three", "four", "five", "six", ""][:6]


class Counter(ReasoningNode):
    """Says a word each second, six in all if nobody says otherwise."""

    def __init__(self, words: int = 6) -> None:
        super().__init__()
        self.words = words
        self.begun = 0

    async def process_context(self, context: Any) -> AsyncIterator[Any]:
        self.begun += 1
        for number in range(self.words):
            yield AgentResponse(content=WORDS[number % len(WORDS)] + " ")
            await trio.sleep(1)
