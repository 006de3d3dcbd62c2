"""Records the tools that the answers of a call use, as their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bargein.routes import Message, Run

from .._verbs import ToolOutcome
from ..events import ToolCall, ToolResult
from ._steps import Step, StepState

if TYPE_CHECKING:
    from ..context._call_context import CallContext
    from ._answer import Answer

_STATES: dict[ToolOutcome, StepState] = {
    "completed": "done",
    "completed_after_interrupt": "done",
    "not_started": "stopped",
    "cancelled_before_effect": "stopped",
    "effect_unknown": "stopped",
    "withdrawn": "stopped",
    "timed_out": "failed",
    "denied": "refused",
    "backgrounded": "background",
}


class StepKeeper:
    """Records the tools that a call's answers use; nodes record their model calls themselves."""

    __slots__ = ("_answer_of", "_context", "_tools")

    def __init__(
        self, context: CallContext, answer_of: Callable[[Run | None], Answer | None]
    ) -> None:
        self._context = context
        self._answer_of = answer_of
        self._tools: dict[str, Step] = {}
        context.router.observe(ToolCall, self._called)
        context.router.observe(ToolResult, self._returned)

    def _called(self, message: Message) -> None:
        event = message.event
        answer = self._answer_of(message.run)
        if answer is not None and event.id:
            self._tools[event.id] = answer.step_list.call_tool(
                event.name, event.id, for_operator=event.for_operator
            )

    def _returned(self, message: Message) -> None:
        event = message.event
        step = self._tools.pop(event.id, None)
        if step is not None:
            step.end("failed" if event.error else _STATES[event.outcome])
            self._context.touch_state()
