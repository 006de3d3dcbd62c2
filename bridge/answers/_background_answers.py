"""The answers of a call that continue in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bargein.routes import Interruption, Run
from bargein.routes.logs import get_logger

from ..events import ToolResult
from ._answer_as_job import BackgroundAnswer

if TYPE_CHECKING:
    from ..context._call_context import CallContext
    from ..playout._playout import Playout
    from ._answer import Answer, OpenAnswers
    from ._result_delivery import Delivery

log = get_logger()


class BackgroundAnswers:
    """Moves answers to the background, and records their results."""

    __slots__ = (
        "_answers",
        "_context",
        "_delivery",
        "_playout",
        "_publish_ended",
        "_stop",
        "_unpublished",
    )

    def __init__(
        self,
        context: CallContext,
        delivery: Delivery,
        answers: OpenAnswers,
        playout: Playout,
        publish_ended: Callable[[Answer], None],
        stop: Callable[[Answer, Interruption], None],
    ) -> None:
        """Start without background answers.

        Args:
            context: The call's.
            delivery: Delivers the results.
            answers: The answers that are not over.
            playout: What is said.
            publish_ended: Publishes that an answer was moved to the background.
            stop: Ends an answer as cut.
        """
        self._context = context
        self._delivery = delivery
        self._answers = answers
        self._playout = playout
        self._publish_ended = publish_ended
        self._stop = stop
        self._unpublished: list[Answer] = []

    def move(self, answer: Answer) -> None:
        """Move an answer to the background, where it continues unheard and blocks nobody."""
        job = BackgroundAnswer(answer, self._ended)
        answer.move_to_background(job.end)
        self._answers.move_to_background(answer)
        self._unpublished.append(answer)
        for utterance in answer.utterances:
            if not utterance.finished:
                self._playout.cut(utterance, "moved to the background")
        for run in tuple(answer.active):
            run.move_to_background()
        self._context.running_tools.add(job)
        # Published one step later, so that a cancel in this step still wins.
        self._context.start_soon(self._publish_soon)

    def run_cut(self, run: Run) -> None:
        """End the answer of a cut run as cut, if it was moved in this very step."""
        if self._unpublished and run.interruption is not None:
            for answer in self.pop_unpublished(run):
                self._stop(answer, run.interruption)

    def pop_unpublished(self, run: Run | None = None) -> list[Answer]:
        """Return, and forget, the answers moved in this very step: their move is not published.

        Args:
            run: Only the answer of this run; ``None`` for all.
        """
        taken = [answer for answer in self._unpublished if run is None or answer.run is run]
        self._unpublished = [answer for answer in self._unpublished if answer not in taken]
        return taken

    def is_unpublished(self, answer: Answer) -> bool:
        """Whether an answer was moved in this very step."""
        return answer in self._unpublished

    async def _publish_soon(self) -> None:
        self.publish_moved()

    def publish_moved(self) -> None:
        """Publish the moves that are not published yet."""
        for answer in self.pop_unpublished():
            self._publish_ended(answer)

    def _ended(self, job: BackgroundAnswer, result: ToolResult) -> None:
        """Record the result of an answer that continued in the background."""
        log.info("answer_came_back", answer=job.answer.number, outcome=result.outcome)
        self._context.running_tools.remove(job)
        if job.answer.outcome == "backgrounded":  # else it was cancelled in that step
            self._delivery.bring(result, job.ended)
