"""The steps of an answer for watchers: what was done, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import trio

StepState = Literal["running", "done", "failed", "stopped", "refused", "background"]
"""How a step ended.  ``stopped``: an interrupt ended it, or kept it from starting; ``refused``:
permission was denied."""


@dataclass(slots=True, eq=False)
class Step:
    """One step of an answer: a model call, or a tool."""

    began_at_s: float
    """In seconds of trio's clock."""
    tool: str = ""
    """The tool; empty for the model."""
    id: str = ""
    """The id of the tool's call; empty for the model."""
    ended_at_s: float | None = None
    """In seconds of trio's clock; ``None`` while it runs."""
    state: StepState = "running"
    for_operator: bool = False
    """Whether it asks the operator; callers of a server do not see it."""

    def end(self, state: StepState) -> None:
        """Record how it ended; later calls do nothing."""
        if self.ended_at_s is None:
            self.ended_at_s = trio.current_time()
            self.state = state

    def view(self, now_s: float) -> StepView:
        """Return it as a watcher sees it at a time."""
        ended_s = now_s if self.ended_at_s is None else self.ended_at_s
        return StepView(
            self.tool, self.id, self.state, ended_s - self.began_at_s, self.for_operator
        )


@dataclass(frozen=True, slots=True)
class StepView:
    """A step, as a watcher sees it."""

    tool: str
    """The tool; empty for a model call."""
    id: str
    """The id of the tool's call; empty for the model."""
    state: StepState
    elapsed_s: float
    """How many seconds it ran, or has run so far."""
    for_operator: bool = False
    """Whether it asks the operator; callers of a server do not see it."""


class StepList(list[Step]):
    """The steps of one answer, in the order in which they started."""

    def ask_model(self) -> None:
        """Start a model call."""
        self.model_answered()
        self.append(Step(trio.current_time()))

    def model_answered(self, state: StepState = "done") -> None:
        """End the model call."""
        for step in reversed(self):  # at most one model call is open, the last one
            if not step.tool:
                step.end(state)
                return

    def call_tool(self, name: str, id: str, *, for_operator: bool = False) -> Step:
        """Start the step of a tool."""
        self.model_answered()
        step = Step(trio.current_time(), name, id, for_operator=for_operator)
        self.append(step)
        return step
