"""The node that lets a language model answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from bridge.events import AgentResponse, ToolCall

from ._context import ConversationContext
from ._reasoning import ReasoningNode
from .llm import ChatModel, TextDelta, ToolCallRequest


class ChatNode(ReasoningNode):
    """Answers each turn with what a language model makes of the conversation as it was heard.

    Text is passed on token by token.  A tool call is published as ``ToolCall``; whoever carries it
    out publishes a ``ToolResult`` with the same id.
    """

    def __init__(
        self,
        model: ChatModel,
        system_prompt: str = "",
        *,
        examples: Sequence[Mapping[str, str]] = (),
        last_entries: int | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Make a node.

        Args:
            model: The model, shared by all calls.
            system_prompt: What the model is told first.
            examples: Chat messages that stand before the conversation, to show a small model how.
            last_entries: How many messages of the conversation the model sees; None means all.
            tools: What the model may call, in the form that ``ChatModel.stream`` takes.
        """
        super().__init__(system_prompt)
        self._model = model
        self._examples = tuple(dict(example) for example in examples)
        self._last_entries = last_entries
        self._tools = tuple(tools)

    def messages(self, context: ConversationContext) -> list[dict[str, Any]]:
        """Return what the model is asked.

        Args:
            context: What the node knows.
        """
        chat = context.as_chat()
        first = 1 if context.system_prompt else 0
        said = chat[first:]
        if self._last_entries is not None:
            said = said[-self._last_entries :]
        return [*chat[:first], *self._examples, *said]

    async def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
        """Stream the model's answer.

        Cancelling closes the model's connection at once.

        Args:
            context: What the node knows.

        Yields:
            ``AgentResponse`` for text, ``ToolCall`` for a complete tool call.

        Raises:
            ChatModelError: The model failed; what was said before stays said.
        """
        answer: Any = self._model.stream(self.messages(context), tools=self._tools)
        async with aclosing(answer):
            async for piece in answer:
                if isinstance(piece, TextDelta):
                    yield AgentResponse(content=piece.text)
                elif isinstance(piece, ToolCallRequest) and piece.arguments is not None:
                    yield ToolCall(name=piece.name, arguments=dict(piece.arguments), id=piece.id)
