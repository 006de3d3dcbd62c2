"""Speculative answers: the model is asked before it is certain that the user's turn is over.

At a pause the model is asked as if the turn were over, and what it writes is buffered: it is not
said, not recorded, and calls no tool. The real answer takes it over if its request is identical.
Otherwise, or when the user goes on, it is discarded.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import trio

from bargein.routes import until_resumed
from bargein.routes.error_containment import closing, contain
from bargein.routes.logs import get_logger

from .llm import AnswerPiece, ChatModel

log = get_logger()

PIECES_AHEAD = 512
"""How many pieces are buffered before the model has to wait. Far more than any model writes during
a pause in speech."""

UNCLAIMED_S = 10.0
"""How long a speculative answer is kept, in seconds; no pause within a turn is that long."""

Chat = Sequence[Mapping[str, Any]]


@dataclass(eq=False)
class _Speculated:
    """A speculative answer and the request that it answers."""

    question: tuple[Chat, Chat]
    began_s: float
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    send: trio.MemorySendChannel[AnswerPiece] = field(init=False)
    receive: trio.MemoryReceiveChannel[AnswerPiece] = field(init=False)
    error: Exception | None = None

    def __post_init__(self) -> None:
        self.send, self.receive = trio.open_memory_channel[AnswerPiece](PIECES_AHEAD)


class SpeculativeModel:
    """A `ChatModel` that wraps another one and can start answering before the request is certain.

    Each call has its own instance, which holds at most one speculative answer.
    """

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._speculated: _Speculated | None = None

    def start_answer(self, nursery: trio.Nursery, messages: Chat, tools: Chat = ()) -> None:
        """Start a speculative answer, and discard the one before it.

        Args:
            nursery: The call's nursery, which owns the task.
            messages: The chat that the real request will probably have.
            tools: What the model may call; no tool runs before the real request.
        """
        if self._speculated is not None and self._speculated.question == (messages, tools):
            return
        self.throw_away()
        begun = self._speculated = _Speculated((messages, tools), trio.current_time())
        begun.scope.deadline = begun.began_s + UNCLAIMED_S
        nursery.start_soon(self._write, begun, name="speculative answer")

    def throw_away(self) -> None:
        """Cancel the speculative answer if it was not taken over; the model is free at once."""
        if self._speculated is not None:
            log.debug("speculation_thrown_away")
            self._speculated.scope.cancel()
            self._speculated = None

    async def _write(self, begun: _Speculated) -> None:
        messages, tools = begun.question
        with begun.send:
            try:
                with begun.scope:
                    await until_resumed()
                    async with closing(self._pieces(messages, tools)) as pieces:
                        async for piece in pieces:
                            await _keep(begun, piece)
            except BaseException as failure:  # noqa: ASYNC103, BLE001  raised to who takes over
                begun.error, rest = contain(failure)
                if rest is not None:
                    raise rest from None  # noqa: ASYNC104  Cancelled is in it
        if self._speculated is begun and begun.scope.cancelled_caught:
            self._speculated = None  # it was not taken over in time

    async def stream(
        self, messages: Chat, *, tools: Chat = ()
    ) -> AsyncGenerator[AnswerPiece, None]:
        """Yield an answer: the speculative one if its request is the same, else a new one.

        Cancelling frees the model at once, as it does without speculation.

        Yields:
            The pieces of the answer.

        Raises:
            ChatModelError: The model failed; the failure of a speculative answer is raised here
                too.
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

    def _claim(self, messages: Chat, tools: Chat) -> _Speculated | None:
        begun = self._speculated
        if begun is None:
            return None
        same = begun.question == (messages, tools)
        if not same or begun.error is not None:
            self.throw_away()
            return None
        self._speculated = None
        begun.scope.deadline = float("inf")
        log.debug("speculation_used", head_start_s=round(trio.current_time() - begun.began_s, 3))
        return begun

    def _pieces(self, messages: Chat, tools: Chat) -> AsyncGenerator[AnswerPiece, None]:
        return self._model.stream(messages, tools=tools)  # type: ignore[return-value]  # models write generators


async def _keep(begun: _Speculated, piece: AnswerPiece) -> None:
    try:
        begun.send.send_nowait(piece)
    except trio.WouldBlock:
        await begun.send.send(piece)
    else:
        # A deadline in the model's code may have passed; the model's next step must see it.
        await trio.lowlevel.cancel_shielded_checkpoint()
