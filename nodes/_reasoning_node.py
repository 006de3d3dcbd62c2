"""The base class of nodes that answer the user's turns from the memory of the call."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any

from bargein.bridge import RouteDefinitionError
from bargein.bridge.events import AgentResponse
from bargein.routes.error_containment import closing

from ._base_node import Node
from ._conversation_context import ConversationContext

if TYPE_CHECKING:
    from bargein.bridge import Message


class ReasoningNode(Node, ABC):
    """Answers from the conversation so far; subclass it and write ``process_context``.

    Attributes:
        context: What the node knows of the conversation.
        current_response: The text of the current or last answer, heard or not.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Check that the answer is yielded, by an async function.

        Raises:
            RouteDefinitionError: ``process_context`` is ``async def`` and yields nothing, or a
                plain generator.
        """
        super().__init_subclass__(**kwargs)
        if inspect.iscoroutinefunction(cls.process_context):
            raise RouteDefinitionError(
                f"{cls.__name__}.process_context() never yields; yield the pieces of the answer, "
                "such as AgentResponse(content=...)"
            )
        if inspect.isgeneratorfunction(cls.process_context):
            raise RouteDefinitionError(
                f"{cls.__name__}.process_context() is a plain generator; write async def"
            )

    def __init__(self, system_prompt: str = "") -> None:
        """Make a node.

        Args:
            system_prompt: The system prompt for a model; empty for none.
        """
        super().__init__()
        self.context = ConversationContext(system_prompt)
        self.current_response = ""

    @abstractmethod
    def process_context(self, context: ConversationContext) -> AsyncIterator[Any]:
        """Yield the answer to the conversation so far, piece by piece.

        Write it as an async generator. An interruption cancels it: let ``trio.Cancelled``
        propagate.

        Args:
            context: What the node knows; it follows the call, also while the node answers: read
                ``last_user_text`` before the first ``yield``, or ``copy()`` it.

        Yields:
            ``AgentResponse`` for text to say, and any other events.
        """

    async def generate(self, message: Message | None = None) -> AsyncIterator[Any]:
        """Stream the answer to the conversation so far; meant for ``.stream(node.generate)``.

        Args:
            message: The trigger; ignored.

        Yields:
            The events that ``process_context`` yields.
        """
        self.current_response = ""
        answered = self.process_context(self.context)
        if not hasattr(answered, "__aiter__"):
            raise self._no_pieces(answered)
        async with closing(answered) as answer:
            async for event in answer:
                if isinstance(event, AgentResponse):
                    self.current_response += event.content
                yield event

    def _no_pieces(self, answered: object) -> RouteDefinitionError:
        """Return the error for a ``process_context`` that is not an async generator."""
        if isinstance(answered, Coroutine):
            answered.close()  # it is never awaited
        return RouteDefinitionError(
            f"{type(self).__name__}.process_context() gave {type(answered).__name__}; write async "
            "def, and yield the pieces of the answer instead of returning it"
        )

    def on_interrupt_generate(self, message: Message | None) -> Any:
        """React to the interruption of an answer; meant for ``interrupt_on(…, handler=…)``.

        Does nothing; override it, sync or async, to save state or free resources.

        Args:
            message: The message that interrupted the answer.
        """
