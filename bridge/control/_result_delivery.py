"""Brings the results of background jobs into the conversation, each exactly once.

A result waits for the next boundary: no agent works or speaks, and the user does not speak either.
If the answer that tells it is cut before any word of it was heard, another event has it told anew,
so that whoever acts on a result acts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..events import JobAnnounced, JobFinished, ToolResult

if TYPE_CHECKING:
    from .._call_context import CallContext
    from ..answers._answer import Turn

Telling = JobFinished | JobAnnounced


class Delivery:
    """The results that wait for their moment in one call."""

    __slots__ = ("_context", "_telling", "_waiting")

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._waiting: list[tuple[Telling, str]] = []
        self._telling: dict[int, tuple[Telling, str]] = {}
        # The list's own length: asked whenever the state is touched, some six times a tool call.
        context.look_when(self._waiting.__len__, self.deliver_next)

    def __len__(self) -> int:
        return len(self._waiting)

    def queue(self, event: JobFinished, source: str) -> None:
        """Bring a result at the next boundary.

        Args:
            event: The result.
            source: The agent whose routes tell it; if another has the floor by then, that one.
        """
        self._waiting.append((event, source))
        self._context.touch_state()

    def bring(self, result: ToolResult, *, is_told: bool) -> None:
        """Bring the result of a job at the next boundary.

        Args:
            result: The result.
            is_told: Whether the agent that has the floor tells it by itself; of a job that somebody
                has stopped nobody speaks, and its result only stands in the history.
        """
        finished = JobFinished(
            id=result.id,
            name=result.name,
            content=result.content,
            error=result.error,
            outcome=result.outcome,
            for_operator=result.for_operator,
        )
        holder = self._context.floor.holder
        self.queue(finished, (is_told and holder) or "call")

    def deliver_next(self) -> None:
        """Bring the next result if this is a boundary; called when the state was worked out."""
        if self._waiting and self._context.state == "idle" and not self._telling:
            event, source = self._waiting.pop(0)
            floor = self._context.floor
            heard = source if floor.has(source) else floor.holder
            self._context.router.publish_detached(event, heard)

    def began(self, turn: Turn, event: Telling) -> None:
        """Record that a turn tells a result."""
        self._telling[turn.number] = (event, turn.agent)

    def ended(self, turn: Turn) -> None:
        """Bring the results again that a finished turn left unheard."""
        told = self._telling.pop(turn.number, None)
        if told is None:
            return
        if turn.interruption is not None and not turn.heard.strip():
            event, source = told
            fields = event.model_dump(exclude={"type"})
            again = JobAnnounced(**fields, for_operator=event.for_operator)  # dumps leave it out
            self._waiting.insert(0, (again, source))
        self._context.touch_state()
