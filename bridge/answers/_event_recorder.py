"""Writes the events of a call to its history, and the tools that its answers use to their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bargein.routes import Message, Run

from .._verbs import ToolOutcome
from ..events import AgentError, JobFinished, ToolCall, ToolResult, UserTranscriptionReceived
from ._steps import Step, StepState

if TYPE_CHECKING:
    from ..context._call_context import CallContext
    from ._answer import Answer
    from ._call_answers import CallAnswers


class HistoryListener:
    """Listens to one call; agents' words are written elsewhere, with how far they were heard."""

    __slots__ = ("_answers", "_history", "_work")

    def __init__(self, context: CallContext, answers: CallAnswers) -> None:
        """Listen to a call.

        Args:
            context: The call's.
            answers: Knows which answer a tool belongs to.
        """
        self._history = context.history
        self._work = context.running_tools
        self._answers = answers
        context.router.observe(UserTranscriptionReceived, self._remember_user)
        context.router.observe([ToolCall, ToolResult], self._remember_tool)
        context.router.observe(JobFinished, self._remember_job)
        context.router.observe(AgentError, self._remember_error)

    def _remember_user(self, message: Message) -> None:
        if message.event.final:
            self._history.add_user(message.event.content, message.id)

    def _remember_tool(self, message: Message) -> None:
        history = self._answers.history  # reading it writes the text said so far first
        if isinstance(message.event, ToolCall):
            answer = self._answers.answer_of(message.run or self._run_of_tool(message.event.id))
            answer = answer or self._answers.answer_cut_by_itself(message)
            history.add_tool_call(message.event, message.id, answer=answer.number if answer else 0)
        else:
            history.add_tool_result(message.event, message.id)

    def _run_of_tool(self, call_id: str) -> Run | None:
        return next((work.run for work in self._work if work.id == call_id), None)

    def _remember_job(self, message: Message) -> None:
        self._history.add_job(message.event, message.id)

    def _remember_error(self, message: Message) -> None:
        if message.event.route:  # a failure outside of chains may be that of writing the history
            self._history.add_fault(message.event.message)


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
