"""A fallback of language models: when one fails, even in mid-answer, the next one is asked.

Rules:
1. A model that fails before it has yielded text or a tool call is replaced without notice.
2. A model that fails later has yielded text that may have been heard. Only the caller of `stream`
   knows, so it gets `AnswerBrokenOffError` with the remaining models, and decides.
3. Text is yielded in whole words, so that another model can continue after the last one.
4. A step after tools is a request of its own that holds their results: another model may answer it,
   and no tool runs twice.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import trio

from bargein.bridge import record_fault
from bargein.bridge.validation.texts import is_blank
from bargein.nodes.llm import (
    AnswerBrokenOffError,
    AnswerPiece,
    AnswerProgress,
    ChatModelTimeoutError,
    EmptyAnswerError,
    SpeechDelta,
    TextDelta,
    ToolCallRequest,
    Usage,
)
from bargein.nodes.llm._errors import Phase
from bargein.nodes.llm._finish_reasons import may_differ
from bargein.nodes.llm._protocol import no_piece
from bargein.routes import until_resumed
from bargein.routes.error_containment import closing
from bargein.routes.logs import get_logger

from ._provider_recovery import Provider, ProviderGroup, in_order

log = get_logger()

Chat = Sequence[Mapping[str, Any]]

STALLS_AFTER_S = 2.2
"""Silence of a model after which the next one is asked, in seconds: when a filler is said."""

_HALF_WORD = re.compile(r"[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]{1,40}\Z")
"""The end of a text that may be half a word. Chinese and Japanese have no spaces, and anything
longer is not a word."""

_QUESTIONS_FAULT = frozenset({400, 413, 422})
"""Statuses of a rejected request: the model works, and another one may accept the request."""

PROBE = ({"role": "user", "content": "Say OK."},)


class FallbackModel(ProviderGroup[Any]):
    """Several language models used as one; made by ``Fallback()``."""

    def stream(self, messages: Chat, *, tools: Chat = ()) -> AsyncGenerator[AnswerPiece, None]:
        """Yield the answer of the first model that works; see `ChatModel.stream`.

        Raises:
            AnswerBrokenOffError: A model failed in mid-answer, and others are left.
            Exception: What the last model raised.
        """
        return self._answer(in_order(self._providers), messages, tools)

    async def _answer(
        self, waiting: Sequence[Provider[Any]], messages: Chat, tools: Chat
    ) -> AsyncGenerator[AnswerPiece, None]:
        """Yield the answer of the first waiting model that works."""
        for count, provider in enumerate(waiting, 1):
            left, has_begun = waiting[count:], False
            await until_resumed()
            try:
                async with closing(self._answer_of(provider, messages, tools)) as pieces:
                    async for piece in pieces:
                        has_begun = has_begun or not isinstance(piece, AnswerProgress)
                        yield piece
                return
            except Exception as error:
                self._note(provider, error)
                if not left:
                    raise
                log.warning("model_switched", to=left[0].circuit.name, in_mid_answer=has_begun)
                if has_begun:
                    name = provider.circuit.name
                    rest = _RemainingModels(partial(self._answer, left))
                    raise AnswerBrokenOffError(rest, model=name) from error

    async def _answer_of(
        self, provider: Provider[Any], messages: Chat, tools: Chat
    ) -> AsyncGenerator[AnswerPiece, None]:
        """Yield the answer of one model, in whole words; an answer without words is an error."""
        has_begun, kept, reason = False, "", ""
        with trio.CancelScope() as patience:  # one scope, opened before the model opens any
            answer = self._ask(provider, messages, tools)
            async with closing(answer) as pieces:
                patience.deadline = trio.current_time() + self._stalls_after_s
                async for piece in pieces:
                    patience.deadline = math.inf
                    if not isinstance(piece, AnswerPiece):
                        raise TypeError(no_piece(provider.engine, piece))
                    has_begun = has_begun or _is_beginning(piece)
                    if not has_begun and isinstance(piece, Usage):
                        reason = piece.finish_reason
                        break  # the answer ended without a word
                    if not has_begun and isinstance(piece, TextDelta):
                        kept += piece.text  # white space, behind which words may come
                        continue
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
            raise EmptyAnswerError(reason, model=name)
        if kept:
            yield TextDelta(kept)

    def _ask(self, provider: Provider[Any], messages: Chat, tools: Chat) -> Any:
        """Return the answer of one model, which may yield anything."""
        return provider.engine.stream(messages, tools=tools)

    def _note(self, provider: Provider[Any], error: Exception) -> None:
        is_withheld = isinstance(error, EmptyAnswerError) and not may_differ(error.finish_reason)
        if is_withheld or getattr(error, "status", None) in _QUESTIONS_FAULT:
            log.warning("model_refused_question", provider=provider.circuit.name)
            record_fault(f"model {provider.circuit.name!r} refused the question")
            return

        async def probe() -> None:
            async with closing(self._answer_of(provider, PROBE, ())) as pieces:
                await anext(pieces)

        provider.fail(error, probe)


class _RemainingModels:
    """The remaining models after one has failed in mid-answer."""

    def __init__(self, answer: Callable[[Chat, Chat], AsyncGenerator[AnswerPiece, None]]) -> None:
        self._answer = answer

    def stream(self, messages: Chat, *, tools: Chat = ()) -> AsyncGenerator[AnswerPiece, None]:
        """Yield the answer of the first one that works; see `FallbackModel.stream`."""
        return self._answer(messages, tools)


def _whole_words(text: str) -> tuple[str, str]:
    """Split a text into its whole words and what may be half a word at its end."""
    half = _HALF_WORD.search(text)
    at = len(text) if half is None else half.start()
    return text[:at], text[at:]


def _is_beginning(piece: AnswerPiece) -> bool:
    """Whether an answer has begun with a piece: white space may be all of it."""
    if isinstance(piece, TextDelta):
        return not is_blank(piece.text)
    return isinstance(piece, ToolCallRequest | SpeechDelta)


def _writes_call(piece: AnswerPiece) -> bool:
    """Whether a model is writing a tool call, which yields no piece before its end."""
    return isinstance(piece, AnswerProgress) and piece.phase == "tool_call"
