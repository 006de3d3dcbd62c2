"""The check of language models."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Unpack

import trio

from bargein.nodes.llm import (
    AnswerPiece,
    AnswerProgress,
    ChatModel,
    TextDelta,
    ToolCallRequest,
    Usage,
)

from ._check_options import CheckOptions, CompleteCheckOptions
from ._check_report import BreachError, CheckReport
from ._provider_checks import ProviderChecks
from ._provider_use import Make, ProviderUse

ASK = ({"role": "user", "content": "A latte, please."},)


@dataclass(frozen=True, slots=True)
class ModelResult:
    """The answer of a model."""

    text: str
    calls: tuple[str, ...]
    usage: Usage


def check_llm(make: Make[ChatModel], **options: Unpack[CheckOptions]) -> CheckReport:
    """Check that a model keeps its promises, whatever its endpoint does and whenever it is
    cancelled.

    Call it from a plain test, not from an async one: it runs trio itself, once per trial.

    Args:
        make: Returns a context manager that opens the model; it gets the fault of the endpoint, or
            None.  The model is asked without tools, and has to answer the same each time.
        options: What to check, and within which bounds.

    Returns:
        What was checked and what was skipped; prints as a table.

    Raises:
        ProviderCheckError: A check failed; the message has the report.
        RuntimeError: It was called inside a run of trio.
        ValueError: `only` names an unknown check.
    """
    return ProviderChecks("model", make, _CheckedModel(), CompleteCheckOptions(**options)).run()


class _CheckedModel(ProviderUse[ChatModel, ModelResult]):
    """Asks a question."""

    async def use(self, provider: ChatModel) -> ModelResult:
        """Ask, and check that the answer makes sense."""
        pieces: list[AnswerPiece] = [piece async for piece in provider.stream(ASK)]
        answer = [piece for piece in pieces if not isinstance(piece, AnswerProgress)]
        if not answer or not isinstance(answer[-1], Usage):
            raise BreachError("an answer that ends with its Usage", repr(answer[-1:]))
        usage = answer.pop()
        assert isinstance(usage, Usage)
        text, calls = "", []
        for piece in answer:
            if isinstance(piece, Usage):
                raise BreachError("one Usage", repr(answer))
            if not isinstance(piece, TextDelta):
                calls.append(piece.raw if isinstance(piece, ToolCallRequest) else repr(piece))
            elif calls or not piece.text:
                raise BreachError("texts that are not empty, ahead of all calls", repr(piece))
            else:
                text += piece.text
        return ModelResult(text, tuple(calls), usage)

    async def use_briefly(self, provider: ChatModel) -> None:
        """Ask, and read the whole answer: a model has no shorter use."""
        await self.use(provider)

    async def use_nothing(self, provider: ChatModel) -> None:
        """Create an answer that nobody reads."""
        answer = provider.stream(ASK)
        await trio.lowlevel.checkpoint()
        del answer

    async def leave_early(self, provider: ChatModel) -> None:
        """Leave an answer after its first piece."""
        answer: Any = provider.stream(ASK)
        async with aclosing(answer):
            await anext(answer)

    async def read_nothing(self, provider: ChatModel, seconds: float) -> None:
        """Read one piece of an answer, and no more for a while."""
        answer: Any = provider.stream(ASK)
        async with aclosing(answer):
            await anext(answer)
            await trio.sleep(seconds)

    async def feed(self, provider: ChatModel, seconds: float) -> None:
        """Ask a question, for at most that time."""
        with trio.move_on_after(seconds):
            await self.use(provider)

    def difference(self, expected: ModelResult, came: ModelResult) -> str:
        """Compare everything but the usage, which follows the answer."""
        if (came.text, came.calls) != (expected.text, expected.calls):
            return "another answer"
        same = came.usage.finish_reason == expected.usage.finish_reason
        return "" if same else "it ended otherwise"
