"""A tool that passes the caller on: to numbers that the app gives, under names that a model knows.

A model never writes a number: whoever talks it into another one would have the app pay the call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, final

import trio

from bargein.bridge.events import (
    CallActionCompleted,
    CallActionFailed,
    TransferProgressed,
    TransferStep,
)

from ._errors import BadArgumentsError, ToolDefinitionError
from ._interrupt_policy import shield
from ._tool import Tool

if TYPE_CHECKING:
    from bargein.routes import Message, Router

    from ._tool_context import ToolContext

LONGEST_S = 240.0
"""How long a transfer may take, in seconds: the announcement, the ringing and the consultation."""

ASKED_AGAIN = (
    "The caller spoke before they were transferred, so they were not. Ask whether they still want "
    "it."
)


@final
class TransferTool(Tool):
    """Lets a model transfer the caller: a tool whose every end the model learns.

    Nothing can be undone once the carrier dials for the caller, or has joined both; before that,
    an interruption does what `if_interrupted` says.
    """

    def __init__(
        self,
        numbers: Mapping[str, str],
        *,
        name: str = "transfer",
        announce: str = "One moment, I am putting you through.",
        warm: bool = False,
        if_interrupted: Literal["continue", "ask"] = "continue",
        description: str = "",
    ) -> None:
        """Make the tool.

        Args:
            numbers: To whom, by the names that the model uses: ``{"repairs": "+15550100"}``.
            name: Its name for the model.
            announce: What the caller is told before; empty for nothing.
            warm: Whether the colleague is asked first, while the caller waits with music; the
                model then says who waits, and why.
            if_interrupted: What becomes of a caller who speaks before they are transferred:
                ``"continue"`` transfers them all the same, ``"ask"`` does not, and the model asks.
            description: Its description for the model; empty for one of its own.

        Raises:
            ToolDefinitionError: There are no numbers, or `if_interrupted` is another word.
        """
        if not numbers or not all(isinstance(one, str) and one for one in numbers.values()):
            raise ToolDefinitionError(
                "TransferTool(numbers=) has a number for each name: {'repairs': '+15550100'}"
            )
        if if_interrupted not in ("continue", "ask"):
            raise ToolDefinitionError(
                f"TransferTool(if_interrupted=) is 'continue' or 'ask', not {if_interrupted!r}"
            )
        fields: dict[str, Any] = {"to": {"type": "string", "enum": list(numbers)}}
        if warm:
            fields["briefing"] = {
                "type": "string",
                "description": "Who waits, and why, in one sentence for the colleague.",
            }
        super().__init__(
            name,
            description or _described(warm=warm),
            {"type": "object", "properties": fields, "required": list(fields)},
            policy="cancel" if if_interrupted == "ask" else shield(LONGEST_S),
            on_duplicate="join",
        )
        self._numbers = dict(numbers)
        self._announce = announce
        self._is_warm = warm
        self._if_interrupted: Literal["continue", "ask"] = if_interrupted

    def parse(self, arguments: Mapping[str, Any] | None, raw: str = "") -> dict[str, Any]:
        """Return the arguments for ``run()``.

        Raises:
            BadArgumentsError: The name is none of the tool's, or the briefing is missing.
        """
        given = super().parse(arguments, raw)
        if given.get("to") not in self._numbers:
            known = ", ".join(map(repr, self._numbers))
            raise BadArgumentsError(f"bad arguments for {self.name!r}: to is one of {known}")
        briefing = given.get("briefing", "")
        if self._is_warm and not (isinstance(briefing, str) and briefing.strip()):
            raise BadArgumentsError(
                f"bad arguments for {self.name!r}: briefing says who waits, and why"
            )
        return given

    async def run(self, context: ToolContext, arguments: dict[str, Any]) -> str:
        """Transfer the caller, and return how that ended."""
        line = _TransferWatch(context.call.router, "accepted" if self._is_warm else "dialled")
        try:
            outcome = await context.call.actions.transfer(
                self._numbers[arguments["to"]],
                announce=self._announce,
                warm=str(arguments.get("briefing", "")) if self._is_warm else "",
                if_interrupted=self._if_interrupted,
                source=context.name,
            )
        except trio.Cancelled:
            if not line.is_final:
                context.conclude(ASKED_AGAIN, "cancelled_before_effect")
            raise
        return self._words(outcome, str(arguments["to"]))

    def _words(self, outcome: CallActionCompleted | CallActionFailed, to: str) -> str:
        if isinstance(outcome, CallActionFailed):
            return f"The caller was not transferred to {to}: {outcome.reason}."
        note = f" ({outcome.note})" if outcome.note else ""
        return f"The caller was transferred to {to}{note}. Say nothing more."


class _TransferWatch:
    """Watches whether a transfer can still be stopped."""

    def __init__(self, router: Router, last_step: TransferStep) -> None:
        self.is_final = False
        self._last_step = last_step
        router.observe(TransferProgressed, self._note)

    def _note(self, message: Message) -> None:
        self.is_final = self.is_final or message.event.step == self._last_step


def _described(*, warm: bool) -> str:
    if warm:
        return (
            "Transfer the caller to a colleague, who is asked first. The caller waits; if nobody "
            "takes the call, the caller is still with you."
        )
    return "Transfer the caller to somebody else. If that fails, the caller is with you again."
