"""A language model that is several: when one fails, the next one is asked, in mid-answer too.

Rules:
1. A model that fails before it has given text or called a tool is replaced unnoticed.
2. One that fails later has given text that may have been heard.  Who asked knows that, and decides:
   they get `AnswerBrokenOffError` with the models that are left.
3. Text is given out in whole words, so that another model can go on behind the last one.
4. A step behind tools is a question of its own, which has their results: another model may answer
   it, and no tool runs twice.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import structlog
import trio

from bargein.bridge import record_fault
from bargein.nodes.llm import (
    AnswerBrokenOffError,
    AnswerPiece,
    AnswerProgress,
    ChatModel,
    ChatModelError,
    ChatModelTimeoutError,
    SpeechDelta,
    TextDelta,
    ToolCallRequest,
    Usage,
)
from bargein.nodes.llm._errors import Phase
from bargein.nodes.llm._protocol import no_piece
from bargein.routes.containment import closing

from ._provider_recovery import Provider, Several, in_order

log = structlog.get_logger()

Chat = Sequence[Mapping[str, Any]]

STALLS_AFTER_S = 2.2
"""Silence of a model after which the next one is asked: when the caller hears a filler."""

_HALF_WORD = re.compile(r"[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]{1,40}\Z")
"""The end of a text that may go on in mid-word.  Chinese and Japanese have no spaces, and what is
longer is no word."""

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

    def stream(self, messages: Chat, *, tools: Chat = ()) -> AsyncGenerator[AnswerPiece, None]:
        """Yield an answer of the first model that gives one; see `ChatModel.stream`.

        Args:
            messages: The chat so far.
            tools: What the model may call.

        Raises:
            AnswerBrokenOffError: A model failed after it had begun to answer, and others are left.
            Exception: What the last model raised.
        """
        return self._answer(in_order(self._providers), messages, tools)

    async def _answer(
        self, waiting: Sequence[Provider[ChatModel]], messages: Chat, tools: Chat
    ) -> AsyncGenerator[AnswerPiece, None]:
        """Yield an answer of one of those that wait."""
        for count, provider in enumerate(waiting, 1):
            left, has_begun, speaks = waiting[count:], False, False
            try:
                async with closing(self._answer_of(provider, messages, tools)) as pieces:
                    async for piece in pieces:
                        has_begun = has_begun or not isinstance(piece, AnswerProgress)
                        speaks = speaks or isinstance(piece, SpeechDelta)
                        yield piece
                return
            except Exception as error:
                self._note(provider, error)
                if not left or speaks:  # nobody goes on with another one's voice
                    raise
                log.warning("model_switched", to=left[0].circuit.name, in_mid_answer=has_begun)
                if has_begun:
                    name = provider.circuit.name
                    raise AnswerBrokenOffError(_Rest(self, left), model=name) from error

    async def _answer_of(
        self, provider: Provider[ChatModel], messages: Chat, tools: Chat
    ) -> AsyncGenerator[AnswerPiece, None]:
        """Yield the answer of one model, in whole words; one that is empty is an error."""
        has_begun, kept = False, ""
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
                    if isinstance(piece, TextDelta):
                        whole, kept = _whole_words(kept + piece.text)
                    else:
                        whole, kept = kept, ""
                    if whole:
                        yield TextDelta(whole)
                    if not isinstance(piece, TextDelta):
                        yield piece
                    if not _writes_call(piece):
                        patience.deadline = trio.current_time() + self._stalls_after_s
                patience.deadline = math.inf
        name = provider.circuit.name
        if patience.cancelled_caught:
            phase: Phase = "between_tokens" if has_begun else "first_token"
            raise ChatModelTimeoutError(phase, self._stalls_after_s, model=name)
        if not has_begun:
            raise ChatModelError("it gave an empty answer", model=name)
        if kept:
            yield TextDelta(kept)

    def _note(self, provider: Provider[ChatModel], error: Exception) -> None:
        if getattr(error, "status", None) in _QUESTIONS_FAULT:
            log.warning("model_refused_question", provider=provider.circuit.name)
            record_fault(f"model {provider.circuit.name!r} refused the question")
            return

        async def probe() -> None:
            async with closing(self._answer_of(provider, _PROBE, ())) as pieces:
                await anext(pieces)

        provider.fail(error, probe)


class _Rest:
    """The models that are left when one has failed in mid-answer."""

    def __init__(self, models: FallbackModel, left: Sequence[Provider[ChatModel]]) -> None:
        self._models = models
        self._left = left

    def stream(self, messages: Chat, *, tools: Chat = ()) -> AsyncGenerator[AnswerPiece, None]:
        """Yield an answer of the first of them that gives one; see `FallbackModel.stream`."""
        return self._models._answer(self._left, messages, tools)


def _whole_words(text: str) -> tuple[str, str]:
    """Return the whole words of a text, and what may be half a word behind them."""
    half = _HALF_WORD.search(text)
    at = len(text) if half is None else half.start()
    return text[:at], text[at:]


def _writes_call(piece: AnswerPiece) -> bool:
    """Whether a model goes on with the call of a tool, of which no piece comes before its end."""
    return isinstance(piece, AnswerProgress) and piece.phase == "tool_call"
