"""The answers of a call that continue in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from bargein.routes import Interruption, Run

from ..control._answer_as_job import BackgroundTurn
from ..events import ToolResult

if TYPE_CHECKING:
    from .._call_context import CallContext
    from ..control._result_delivery import Delivery
    from ..playout._playout import Playout
    from ._answer import Turn, Turns

log = structlog.get_logger()


class BackgroundAnswers:
    """Moves answers to the background, and records their results."""

    __slots__ = (
        "_context",
        "_delivery",
        "_playout",
        "_publish_ended",
        "_stop",
        "_turns",
        "_unpublished",
    )

    def __init__(
        self,
        context: CallContext,
        delivery: Delivery,
        turns: Turns,
        playout: Playout,
        tell: Callable[[Turn], None],
        stop: Callable[[Turn, Interruption], None],
    ) -> None:
        """Start without background answers.

        Args:
            context: The call's.
            delivery: Delivers the results.
            turns: The turns that are not over.
            playout: What is said.
            tell: Publishes that a turn was moved to the background.
            stop: Ends a turn as cut.
        """
        self._context = context
        self._delivery = delivery
        self._turns = turns
        self._playout = playout
        self._publish_ended = tell
        self._stop = stop
        self._unpublished: list[Turn] = []

    def move(self, turn: Turn) -> None:
        """Move a turn to the background, where it continues unheard and blocks nobody."""
        job = BackgroundTurn(turn, self._ended)
        turn.move_to_background(job.end)
        self._turns.set_aside(turn)
        self._unpublished.append(turn)
        for utterance in turn.utterances:
            if not utterance.finished:
                self._playout.cut(utterance, "moved to the background")
        for run in tuple(turn.active):
            run.set_aside()
        self._context.work.add(job)
        # Published one step later, so that a cancel in this step still wins.
        self._context.router.nursery.start_soon(self._publish_soon)

    def run_cut(self, run: Run) -> None:
        """End the turn of a cut run as cut, if it was moved in this very step."""
        if self._unpublished and run.interruption is not None:
            for turn in self.pop_unpublished(run):
                self._stop(turn, run.interruption)

    def pop_unpublished(self, run: Run | None = None) -> list[Turn]:
        """Return, and forget, the turns moved in this very step: their move is not published.

        Args:
            run: Only the turn of this run; ``None`` for all.
        """
        taken = [turn for turn in self._unpublished if run is None or turn.run is run]
        self._unpublished = [turn for turn in self._unpublished if turn not in taken]
        return taken

    def is_unpublished(self, turn: Turn) -> bool:
        """Whether a turn was moved in this very step."""
        return turn in self._unpublished

    async def _publish_soon(self) -> None:
        self.publish_moved()

    def publish_moved(self) -> None:
        """Publish the moves that are not published yet."""
        for turn in self.pop_unpublished():
            self._publish_ended(turn)

    def _ended(self, job: BackgroundTurn, result: ToolResult) -> None:
        """Record the result of a turn that continued in the background."""
        log.info("turn_came_back", turn=job.turn.number, outcome=result.outcome)
        self._context.work.remove(job)
        if job.turn.outcome == "backgrounded":  # else it was cancelled in that step
            self._delivery.bring(result, is_reported=not job.is_cut)
