"""Answers that are begun before it is certain that the user is done.

At a pause the model is asked as if the turn were over, and what it writes is kept back: it is not
said, not recorded, and calls no tool.  The answer that is asked for in the end takes over what was
begun if its question is the very same; otherwise, and when the user goes on, it is thrown away.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog
import trio

from bargein.routes.containment import closing, contain

from .llm import AnswerPiece, ChatModel

log = structlog.get_logger()

PIECES_AHEAD = 512
"""How many pieces may wait to be asked for; the model waits from there on.  Far more than any
model writes in a pause of a speaker."""

UNCLAIMED_S = 10.0
"""How long what was begun may wait to be asked for; no pause within a turn is that long."""

Chat = Sequence[Mapping[str, Any]]


@dataclass(eq=False)
class _Begun:
    """An answer that was begun, and the question that it answers."""

    question: tuple[Chat, Chat]
    began_s: float
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    send: trio.MemorySendChannel[AnswerPiece] = field(init=False)
    receive: trio.MemoryReceiveChannel[AnswerPiece] = field(init=False)
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.send, self.receive = trio.open_memory_channel[AnswerPiece](PIECES_AHEAD)


class SpeculativeModel:
    """A `ChatModel` in front of another one, which can be asked before the question is certain.

    One instance a call: it keeps one answer that was begun.
    """

    def __init__(self, model: ChatModel) -> None:
        """Stand in front of a model.

        Args:
            model: The model, shared by all calls.
        """
        self._model = model
        self._begun: _Begun | None = None

    def start_answer(self, nursery: trio.Nursery, messages: Chat, tools: Chat = ()) -> None:
        """Begin an answer that may be asked for, in the place of one that nobody asked for.

        Args:
            nursery: Owns the work; the call's own.
            messages: The chat as it will probably be.
            tools: What the model may call; nothing is called before the answer is asked for.
        """
        if self._begun is not None and self._begun.question == (messages, tools):
            return
        self.throw_away()
        begun = self._begun = _Begun((messages, tools), trio.current_time())
        begun.scope.deadline = begun.began_s + UNCLAIMED_S
        nursery.start_soon(self._write, begun, name="speculative answer")

    def throw_away(self) -> None:
        """End the answer that was begun, if nobody asked for it; the model is free at once."""
        if self._begun is not None:
            log.debug("speculation_thrown_away")
            self._begun.scope.cancel()
            self._begun = None

    async def _write(self, begun: _Begun) -> None:
        messages, tools = begun.question
        with begun.send:
            try:
                with begun.scope:
                    async with closing(self._pieces(messages, tools)) as pieces:
                        async for piece in pieces:
                            await _keep(begun, piece)
            except BaseException as failure:  # noqa: ASYNC103, BLE001  raised to who takes over
                begun.error, rest = contain(failure)
                if rest is not None:
                    raise rest from None  # noqa: ASYNC104  Cancelled is in it
        if self._begun is begun and begun.scope.cancelled_caught:
            self._begun = None  # nobody has asked for it

    async def stream(
        self, messages: Chat, *, tools: Chat = ()
    ) -> AsyncGenerator[AnswerPiece, None]:
        """Yield an answer: the one that was begun for the same question, else a new one.

        Cancelling frees the model at once, as it does without speculation.

        Args:
            messages: The chat so far.
            tools: What the model may call.

        Yields:
            The pieces of the answer.

        Raises:
            ChatModelError: The model failed after the answer was asked for.
        """
        begun = self._claim(messages, tools)
        if begun is None:
            async with closing(self._pieces(messages, tools)) as pieces:
                async for piece in pieces:
                    yield piece
            return
        try:
            async for piece in begun.receive:
                yield piece
            if begun.error is not None:
                raise begun.error
        finally:
            begun.scope.cancel()

    def _claim(self, messages: Chat, tools: Chat) -> _Begun | None:
        begun = self._begun
        if begun is None:
            return None
        same = begun.question == (messages, tools)
        if not same or begun.error is not None:
            self.throw_away()
            return None
        self._begun = None
        begun.scope.deadline = float("inf")
        log.debug("speculation_used", head_start_s=round(trio.current_time() - begun.began_s, 3))
        return begun

    def _pieces(self, messages: Chat, tools: Chat) -> AsyncGenerator[AnswerPiece, None]:
        return self._model.stream(messages, tools=tools)  # type: ignore[return-value]  # models write generators


async def _keep(begun: _Begun, piece: AnswerPiece) -> None:
    try:
        begun.send.send_nowait(piece)
    except trio.WouldBlock:
        await begun.send.send(piece)
    else:
        # A deadline that the model holds may be over by now: that is for its next step.
        await trio.lowlevel.cancel_shielded_checkpoint()
