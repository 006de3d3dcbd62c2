"""An answer in the background: a job of the call, like a detached tool."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from bargein.routes import Run

from .._verbs import JobEnd, PolicyKind, ToolOutcome, Verb
from ..context._running_tools import StillRunning, Work
from ..events import Outcome, ToolResult

if TYPE_CHECKING:
    from ._answer import Answer

_OUTCOMES: dict[Outcome, ToolOutcome] = {"completed": "completed", "capped": "completed"}


class BackgroundAnswer:
    """An answer that continues in the background; a ``Work`` whose run is ``None``.

    Attributes:
        id: ``answer_`` and its number.
        name: The agent whose answer it is.
        policy: ``cancel``: its runs are cut at once; its tools end by their own policies.
        run: ``None``, as for every job.
        inside: ``None``: no tool started it.
        moving_from: ``None``: until its move is published, the call itself lets a stop win.
        started_at_s: When the answer started, in seconds of trio's clock.
        done: Set once all its work has ended.
        outcome: How it ended; ``None`` until then.
        for_operator: Always false, because only its tools ask for permission.
        ended: The same in the words for jobs; ``completed`` until then.
        final: Its result, with the text that it generated unheard; ``None`` until it is done.
    """

    def __init__(
        self, answer: Answer, on_end: Callable[[BackgroundAnswer, ToolResult], None]
    ) -> None:
        """Track an answer.

        Args:
            answer: The answer; its runs were moved to the background.
            on_end: Called once with the result.
        """
        self.answer = answer
        self.policy: PolicyKind = "cancel"
        self.run: Run | None = None
        self.inside: Work | None = None
        self.moving_from: Run | None = None
        self.id = f"answer_{answer.number}"
        self.name = answer.agent
        self.started_at_s: float | None = answer.started_at_s
        self.done = trio.Event()
        self.outcome: ToolOutcome | None = None
        self.for_operator = False
        self.ended: JobEnd = "completed"
        self.final: ToolResult | None = None
        self._on_end = on_end

    @property
    def is_waiting(self) -> bool:
        """Return false: an answer is waited for by its tools' own state."""
        return False

    @property
    def is_cut(self) -> bool:
        """Whether it was stopped."""
        return self.answer.run is not None and self.answer.run.is_cut

    def interrupt(self, verb: Verb) -> StillRunning | None:
        """Cut its runs, even protected ones, in this step; never waits.

        Args:
            verb: Why; ``resume`` and ``background`` do nothing.

        Returns:
            ``None``, because nothing of it continues.
        """
        if self.outcome is None and verb not in ("resume", "background"):
            for run in dict.fromkeys((self.answer.run, *self.answer.active)):
                if run is not None:
                    run.cut(reason=verb)
        return None

    def stop(self) -> None:
        """Stop it, as ``cancel`` would."""
        self.interrupt("cancel")

    def to_background(self) -> bool:
        """Return false: it is in the background already."""
        return False

    def notify_background(self) -> None:
        """Do nothing: it is in the background already."""

    def consequence(self, verb: Verb) -> str:
        """Return in a few words what ``interrupt(verb)`` would do now."""
        return "continues in the background" if verb in ("resume", "background") else "is stopped"

    def end(self, outcome: Outcome) -> None:
        """Record that all its work has ended.

        Args:
            outcome: How its last run ended.
        """
        unheard = self.answer.generated[len(self.answer.heard) :]
        self.outcome = _OUTCOMES.get(outcome, "effect_unknown")
        if outcome == "capped" or outcome == "failed":
            self.ended = outcome
        elif outcome != "completed":
            self.ended = "stopped"
        self.final = ToolResult(
            name=self.name,
            id=self.id,
            content=unheard + "".join(self.answer.background_text),
            error=outcome == "failed",
            outcome=self.outcome,
        )
        self.done.set()
        self._on_end(self, self.final)
