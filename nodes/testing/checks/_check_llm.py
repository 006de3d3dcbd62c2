"""Checks a language model."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import trio

from bargein.nodes.llm import (
    AnswerPiece,
    AnswerProgress,
    ChatModel,
    TextDelta,
    ToolCallRequest,
    Usage,
)

from ..fakes import FaultKind
from ._check_report import Breach, CheckReport
from ._provider_checks import Make, ProviderChecks, ProviderUse, Terms

ASK = ({"role": "user", "content": "A latte, please."},)


@dataclass(frozen=True, slots=True)
class Answered:
    """What a model answered."""

    text: str
    calls: tuple[str, ...]
    usage: Usage


def check_llm(
    make: Make[ChatModel],
    *,
    can: Collection[FaultKind] = (),
    within_s: float = 90.0,
    points: int | None = None,
    times: int = 1000,
    memory_bytes: int = 16 << 20,
    virtual: bool = True,
    only: Collection[str] | None = None,
) -> CheckReport:
    """Check that a model keeps its promises, whatever its endpoint does and whenever it is cut.

    Call it from a plain test, not from an async one: it runs trio itself, once for each thing that
    it tries.

    Args:
        make: Returns a context manager that opens the model; it is given what shall go wrong with
            the endpoint, or None.  The model is asked without tools, and has to give the same
            answer each time.
        can: What can go wrong with the endpoint that `make` plays: `FakeChat.faults`.  Checks that
            need another fault are reported as skipped.
        within_s: Within how many seconds an answer or an error has to come.
        points: How many steps of a use are cancelled at most, evenly; None: each.
        times: How many answers may leave nothing.
        memory_bytes: How much a model may hold of what nobody takes.
        virtual: Whether time is virtual; False for what has processes, threads or real sockets.
        only: The names of the checks; None: all.

    Returns:
        What was checked, and what was skipped; prints as a table.

    Raises:
        ProviderCheckError: A check failed; the message has the report.
        RuntimeError: It was called from within trio.
        ValueError: `only` names a check that there is not.
    """
    terms = Terms(
        can=can, within_s=within_s, points=points, times=times,
        memory_bytes=memory_bytes, virtual=virtual, only=only,
    )  # fmt: skip
    return ProviderChecks("model", make, _ModelUse(), terms).run()


class _ModelUse(ProviderUse[ChatModel, Answered]):
    """Asks a question."""

    async def use(self, provider: ChatModel) -> Answered:
        """Ask, and see that the answer makes sense."""
        pieces: list[AnswerPiece] = [piece async for piece in provider.stream(ASK)]
        answer = [piece for piece in pieces if not isinstance(piece, AnswerProgress)]
        if not answer or not isinstance(answer[-1], Usage):
            raise Breach("an answer that ends with its Usage", repr(answer[-1:]))
        usage = answer.pop()
        assert isinstance(usage, Usage)
        text, calls = "", []
        for piece in answer:
            if isinstance(piece, Usage):
                raise Breach("one Usage", repr(answer))
            if not isinstance(piece, TextDelta):
                calls.append(piece.raw if isinstance(piece, ToolCallRequest) else repr(piece))
            elif calls or not piece.text:
                raise Breach("texts that are not empty, ahead of all calls", repr(piece))
            else:
                text += piece.text
        return Answered(text, tuple(calls), usage)

    async def use_briefly(self, provider: ChatModel) -> None:
        """Ask."""
        await self.use(provider)

    async def use_nothing(self, provider: ChatModel) -> None:
        """Make an answer that nobody takes."""
        answer = provider.stream(ASK)
        await trio.lowlevel.checkpoint()
        del answer

    async def leave_early(self, provider: ChatModel) -> None:
        """Leave an answer with its first piece."""
        answer: Any = provider.stream(ASK)
        async with aclosing(answer):
            await anext(answer)

    async def read_nothing(self, provider: ChatModel, seconds: float) -> None:
        """Take one piece of an answer, and no more for a while."""
        answer: Any = provider.stream(ASK)
        async with aclosing(answer):
            await anext(answer)
            await trio.sleep(seconds)

    async def feed(self, provider: ChatModel, seconds: float) -> None:
        """Ask for as long."""
        with trio.move_on_after(seconds):
            await self.use(provider)

    def difference(self, expected: Answered, came: Answered) -> str:
        """Compare all but what it cost, which comes behind the answer."""
        if (came.text, came.calls) != (expected.text, expected.calls):
            return "another answer"
        same = came.usage.finish_reason == expected.usage.finish_reason
        return "" if same else "it ended otherwise"
