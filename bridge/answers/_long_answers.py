"""Marks answers that take long, so that waiting people can be told."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import trio

from ..events import LongRunning

if TYPE_CHECKING:
    from bargein.routes import Router

    from ._answer import Answer

LONG_S = 10.0
"""After how many seconds at work an answer counts as long: the usual patience of people who wait
(Nielsen, "Response Times: The 3 Important Limits", 1993)."""

LOOK_S = 0.1
"""The minimum of seconds until the next check: the clock of an answer that is paused, or waits
for a person, stands still, however near to the mark it is."""

_SLACK_S = 1e-6
"""The tolerance for rounding errors in sums of times, in seconds."""


class LongRunningMarks:
    """Marks the long answers of one call; this takes one timer for each answer, and no task."""

    __slots__ = ("_router",)

    def __init__(self, router: Router) -> None:
        self._router = router

    def watch(self, answer: Answer) -> None:
        """Mark an answer after ``LONG_S`` seconds of work, as ``Answer.active_s()`` counts."""
        self._check_in(answer, LONG_S)

    def end(self, answer: Answer) -> None:
        """Stop watching an answer that is over."""
        self._router.forget(answer)

    def _check_in(self, answer: Answer, seconds: float) -> None:
        self._router.call_at(answer, trio.current_time() + seconds, partial(self._check, answer))

    def _check(self, answer: Answer) -> None:
        active_s = answer.active_s(trio.current_time())
        if active_s < LONG_S - _SLACK_S:
            self._check_in(answer, max(LONG_S - active_s, LOOK_S if answer.stands_still else 0.0))
            return
        phase = answer.seen_phase
        event = LongRunning(answer=answer.number, elapsed_s=active_s, phase=phase)
        self._router.publish_detached(event, answer.agent)
