"""Finds what the verbs of a call would act on now: its answer, its tools, its jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bargein.routes import Run

from .._verbs import AnswerPhase, Verb
from ..answers._background_answers import BackgroundAnswer
from ..context._running_tools import Work

if TYPE_CHECKING:
    from ..answers._answer import Answer
    from ..answers._call_answers import CallAnswers
    from ..context._call_context import CallContext


class VerbTargets:
    """Finds what a verb would affect if it were used now; changes nothing."""

    __slots__ = ("_answers", "_context")

    def __init__(self, context: CallContext, answers: CallAnswers) -> None:
        self._context = context
        self._answers = answers

    def target(self) -> Answer | None:
        """Return the answer that a verb would affect now; ``None`` for none."""
        return self._answers.newest_answer_of(self._context.floor.heard)

    def works(self, answer: Answer | None) -> tuple[Work, ...]:
        """Return the running tools of an answer."""
        runs = () if answer is None else ({answer.run, *answer.active} - {None})
        found: dict[Work, None] = {}
        for run in runs:
            if run is not None:
                found.update(dict.fromkeys(self._context.running_tools.of(run)))
        return tuple(found)

    def tools_for(self, verb: Verb) -> tuple[Work, ...]:
        """Return the tools that a verb would stop, or let finish, now."""
        if verb in ("emergency_stop", "shutdown"):
            return tuple(self._context.running_tools)
        background = self.background_work() if verb == "cancel" else []
        moved = [work.answer for work in background if isinstance(work, BackgroundAnswer)]
        tools = (work for answer in (self.target(), *moved) for work in self.works(answer))
        return tuple(dict.fromkeys((*tools, *self.left(), *background)))

    def left(self) -> list[Work]:
        """Return the tools in their grace period, of answers that a verb or a rule cut."""
        return [
            work
            for work in self._context.running_tools
            if work.outcome is None and work.run is not None and work.run.is_stale
        ]

    @property
    def can_move(self) -> bool:
        """Whether there is an answer that is still being generated."""
        answer = self.target()
        return answer is not None and answer.outcome is None

    @property
    def has_work(self) -> bool:
        """Whether anything runs: tools, answers in the background, runs of any agent."""
        return len(self._context.running_tools) > 0 or bool(
            self.uncut_runs(self._context.floor.is_agent)
        )

    @property
    def works_in_background(self) -> bool:
        """Whether tools or answers work in the background."""
        return bool(self._context.running_tools.jobs)

    @property
    def is_delivering(self) -> bool:
        """Whether part of an answer that is over still waits in an async sink."""
        for run in self._context.router.async_sinks.waiting:
            is_over = run.outcome is not None and not (run.is_cut or run.is_in_background)
            if is_over and run.streams and self._context.floor.has(run.source):
                return True
        return False

    @property
    def idle_phase(self) -> AnswerPhase:
        """The phase without a current answer: ``speaking`` while the last one is delivered."""
        return "speaking" if self.is_delivering else "idle"

    @property
    def undelivered(self) -> list[Run]:
        """The runs that have ended, and part of whose output still waits in an async sink."""
        return [run for run in self.uncut_runs(self._context.floor.has) if not run.is_running]

    @property
    def has_leftovers(self) -> bool:
        """Whether a cancel without a current answer has something to end."""
        return bool(self.left() or self.undelivered) or any(
            work.policy != "detach" for work in self.background_work()
        )

    def background_work(self) -> list[Work]:
        """Return the background work that a cancel concerns: all, without a current answer.

        A tool with the policy ``detach`` goes on, and so do the tools that it started itself.
        """
        if self.target() is not None:
            return []
        return [work for work in self._context.running_tools.jobs if not _is_in_detached(work)]

    @property
    def can_be_cut(self) -> bool:
        """Whether a barge-in would cut anything that is not protected."""
        runs = self.uncut_runs(self._context.floor.has)
        return not runs or any(not run.is_protected for run in runs)

    def uncut_runs(self, is_meant: Callable[[str], bool]) -> list[Run]:
        """Return the runs that may be cut, of the sources that are meant."""
        return [
            run
            for runtime in self._context.router.routes
            if is_meant(runtime.source)
            for run in runtime.runs
            if not (run.is_cut or run.is_in_background or run.is_settled)
        ]


def _is_in_detached(work: Work) -> bool:
    """Whether a tool works for another one that continues as a detached job."""
    outer = work.inside
    while outer is not None:
        if outer.run is None and outer.policy == "detach":
            return True
        outer = outer.inside
    return False
