"""A language model that is several: the next one answers if one fails before it has said anything.

What was written may have been heard, so once there is text or the call of a tool, the answer stands
or falls with the model that began it.  A step behind tools is a question of its own, which has
their results: another model may answer it, and no tool runs twice.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import structlog
import trio

from bargein.nodes.llm import (
    AnswerPiece,
    AnswerProgress,
    ChatModel,
    ChatModelError,
    ChatModelTimeoutError,
    TextDelta,
    ToolCallRequest,
    Usage,
)
from bargein.nodes.llm._protocol import no_piece
from bargein.routes.containment import closing

from ._provider import Provider, Several, in_order

log = structlog.get_logger()

Chat = Sequence[Mapping[str, Any]]

STALLS_AFTER_S = 2.2
"""Silence of a model after which the next one is asked: when the caller hears a filler."""

_QUESTIONS_FAULT = frozenset({400, 413, 422})
"""Statuses of a question that is refused: the model works, and another may take the question."""

_PROBE = ({"role": "user", "content": "Say OK."},)


class FallbackModel(Several[ChatModel]):
    """Several language models that stand in for one another; made by ``Fallback()``."""

    def __init__(self, models: Sequence[ChatModel], stalls_after_s: float | None = None) -> None:
        """Keep the models, the first one first.

        Args:
            models: The models.
            stalls_after_s: How long one may take to its first piece; None for `STALLS_AFTER_S`.
        """
        stalls_after_s = STALLS_AFTER_S if stalls_after_s is None else stalls_after_s
        super().__init__("model", models, stalls_after_s)

    async def stream(
        self, messages: Chat, *, tools: Chat = ()
    ) -> AsyncGenerator[AnswerPiece, None]:
        """Yield an answer of the first model that gives one; see `ChatModel.stream`.

        Args:
            messages: The chat so far.
            tools: What the model may call.

        Yields:
            The pieces of the answer.

        Raises:
            Exception: What the last model raised, or one that had begun to answer.
        """
        waiting = in_order(self._providers)
        while True:
            provider, has_begun = waiting.pop(0), False
            try:
                async with closing(self._answer(provider, messages, tools)) as pieces:
                    async for piece in pieces:
                        has_begun = has_begun or not isinstance(piece, AnswerProgress)
                        yield piece
                return
            except Exception as error:
                self._note(provider, error)
                if has_begun or not waiting:
                    raise
                log.warning("model_switched", to=waiting[0].circuit.name)

    async def _answer(
        self, provider: Provider[ChatModel], messages: Chat, tools: Chat
    ) -> AsyncGenerator[AnswerPiece, None]:
        """Yield the answer of one model; one that is empty is an error."""
        has_begun = False
        with trio.CancelScope() as patience:  # one scope, opened before the model opens any
            answer: Any = provider.engine.stream(messages, tools=tools)
            async with closing(answer) as pieces:
                patience.deadline = trio.current_time() + self._stalls_after_s
                async for piece in pieces:
                    patience.deadline = math.inf
                    if not isinstance(piece, AnswerPiece):
                        raise TypeError(no_piece(provider.engine, piece))
                    has_begun = has_begun or isinstance(piece, TextDelta | ToolCallRequest)
                    if not has_begun and isinstance(piece, Usage):
                        break  # it is over, and empty
                    yield piece
                    if not has_begun:
                        patience.deadline = trio.current_time() + self._stalls_after_s
                patience.deadline = math.inf
        name = provider.circuit.name
        if patience.cancelled_caught:
            raise ChatModelTimeoutError("first_token", self._stalls_after_s, model=name)
        if not has_begun:
            raise ChatModelError("it gave an empty answer", model=name)

    def _note(self, provider: Provider[ChatModel], error: Exception) -> None:
        if getattr(error, "status", None) in _QUESTIONS_FAULT:
            log.warning("model_refused_question", provider=provider.circuit.name)
            return

        async def probe() -> None:
            async with closing(self._answer(provider, _PROBE, ())) as pieces:
                await anext(pieces)

        provider.fail(error, probe)
