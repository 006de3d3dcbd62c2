"""The agents that the callers call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import trio

from bargein import Call, ChatNode, ConversationContext, ReasoningNode, UserEntry
from bargein.events import AgentResponse, CallStarted, UserStartedSpeaking, UserStoppedSpeaking
from bargein.llm import TextDelta, ToolCallRequest
from bargein.tools import tool

STORY = (
    "The lighthouse stands on a small island in the north. Nobody has lived there for many years, "
    "but every evening the lamp is lit. Fishermen say that it was built by two brothers, who came "
    "with a single boat and a load of white stone. They worked through three summers, and in the "
    "winters they carved the stairs. When the tower was finished, one of them sailed away, and the "
    "other one stayed to keep the light. He kept a garden behind the house, with beans and onions, "
    "and he wrote down the weather of each day in a green book. The book is still there, on a "
    "shelf beside the door, and whoever comes by boat writes a line of their own."
)
"""About forty seconds without any word that callers say here."""


class Teller(ReasoningNode):
    """Tells the story, from the beginning each time it is asked."""

    async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
        await trio.lowlevel.checkpoint()
        yield AgentResponse(content=STORY)


class Clerk(ReasoningNode):
    """Repeats what was said, and then says `rest`."""

    def __init__(self, rest: str = "") -> None:
        super().__init__()
        self._rest = rest

    async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
        await trio.lowlevel.checkpoint()
        said = [entry.content for entry in context if isinstance(entry, UserEntry)]
        yield AgentResponse(content=f"You said: {said[-1].strip() if said else 'nothing.'} ")
        if self._rest:
            yield AgentResponse(content=self._rest)


async def tell(call: Call) -> None:
    """Answer a call with the story at once."""
    teller = Teller()
    (
        call.bridge(teller)
        .on([CallStarted, UserStoppedSpeaking])
        .interrupt_on(UserStartedSpeaking)
        .stream(teller.generate)
        .broadcast()
    )
    await trio.lowlevel.checkpoint()


def repeat(rest: str = "") -> Any:
    """Return an answer function that greets, repeats what is said, and continues with `rest`."""

    async def answer(call: Call) -> None:
        clerk = Clerk(rest)
        (
            call.bridge(clerk)
            .on(UserStoppedSpeaking)
            .interrupt_on(UserStartedSpeaking)
            .stream(clerk.generate)
            .broadcast()
        )
        call.say("Hello.")

    return answer


class Searching:
    """A model that calls a tool, and an answer function that runs it silently.

    Attributes:
        began_s: When each run of the tool began, in seconds of trio's clock.
        ended_s: When each run ended.
    """

    def __init__(self) -> None:
        self.began_s: list[float] = []
        self.ended_s: list[float] = []
        self._asked = 0

    async def stream(self, messages: Any, *, tools: Any = ()) -> AsyncIterator[Any]:
        """Call the search first, and then answer each request."""
        await trio.lowlevel.checkpoint()
        self._asked += 1
        if self._asked == 1:
            yield ToolCallRequest(id="call_1", name="search", arguments={}, raw="")
        else:
            yield TextDelta("As you wish.")

    async def answer(self, call: Call) -> None:
        """Answer a call."""

        @tool
        async def search() -> str:
            """Search for a long time without speaking."""
            self.began_s.append(trio.current_time())
            try:
                await trio.sleep(30)
            finally:
                self.ended_s.append(trio.current_time())
            return "nothing"

        node = ChatNode(self, tools=[search])
        (
            call.bridge(node)
            .on([CallStarted, UserStoppedSpeaking])
            .interrupt_on(UserStartedSpeaking)
            .stream(node.generate)
            .broadcast()
        )
        await trio.lowlevel.checkpoint()
