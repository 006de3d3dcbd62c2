"""The answers of a call that went on in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import structlog

from ..control._background_turn import BackgroundTurn
from ..events import ToolResult

if TYPE_CHECKING:
    from .._call_context import CallContext
    from ..control._result_delivery import Delivery
    from ..playout._playout import Playout
    from ._answer import Turn, Turns

log = structlog.get_logger()


class BackgroundAnswers:
    """Moves answers to the background, and takes in what comes of them."""

    def __init__(
        self,
        context: CallContext,
        delivery: Delivery,
        turns: Turns,
        playout: Playout,
        tell: Callable[[Turn], None],
    ) -> None:
        """Begin with none.

        Args:
            context: The call's.
            delivery: Brings the results.
            turns: The turns that are not over.
            playout: What is said.
            tell: Tells that a turn went to the background.
        """
        self._context = context
        self._delivery = delivery
        self._turns = turns
        self._playout = playout
        self._tell = tell
        self._untold: list[Turn] = []

    def move(self, turn: Turn) -> None:
        """Let a turn go on in the background: unheard, and holding up nobody."""
        job = BackgroundTurn(turn, self._ended)
        turn.move_to_background(job.end)
        self._turns.set_aside(turn)
        for utterance in turn.utterances:
            if not utterance.finished:
                self._playout.cut(utterance, "moved to the background")
        for run in tuple(turn.active):
            run.set_aside()
        self._context.work.add(job)
        self._untold.append(turn)
        # Told in a step of its own: a cancel in this one still wins.
        self._context.router.nursery.start_soon(self._tell_soon)

    async def _tell_soon(self) -> None:
        self.publish_moved()

    def publish_moved(self) -> None:
        """Tell of those that were moved and not told yet."""
        for turn in self.take_untold():
            self._tell(turn)

    def take_untold(self) -> list[Turn]:
        """Return those that were moved in this very step, of which nothing will be told now."""
        untold, self._untold = self._untold, []
        return untold

    def _ended(self, job: BackgroundTurn, result: ToolResult) -> None:
        """Take in the result of a turn that went on in the background."""
        log.info("turn_came_back", turn=job.turn.number, outcome=result.outcome)
        self._context.work.remove(job)
        if job.turn.outcome == "backgrounded":  # else it was cancelled as it was moved
            self._delivery.bring(result, is_told=not job.is_cut)
