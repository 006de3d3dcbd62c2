"""What the verbs of a call act on, and what a use of one does to it, all in one step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

from bargein.routes import Message, Router, Run

from .._verbs import AnswerPhase, PauseTools, Verb
from ..answers._background_answers import BackgroundAnswer
from ..context._running_tools import Work
from ..context._verb_receipt import Receipt
from ..events import InputReturned, UserStoppedSpeaking, UserTranscriptionReceived

if TYPE_CHECKING:
    from ..answers._answer import Answer
    from ..answers._call_answers import CallAnswers
    from ..context._call_context import CallContext

Cuts = Literal["nothing", "speech", "step", "work", "everything"]
"""What a verb ends: the speech, as a caller does by talking; the current step; the answer, or
without one what works in the background; or all that runs, without grace."""


class VerbTargets:
    """Finds what a verb would affect if it were used now, and lets it stand still.

    Attributes:
        context: What the parts of the call share.
        answers: What is said in it.
    """

    __slots__ = ("_paused", "answers", "context")

    def __init__(self, context: CallContext, answers: CallAnswers) -> None:
        self.context = context
        self.answers = answers
        self._paused: tuple[str, ...] = ()

    def stand(self) -> None:
        """Let everything stand still."""
        self.context.pause(on=True)
        self._paused = ()
        for source in (*self.context.floor.agents, "call"):
            self.pause_too(source)
        self.answers.audio.hold("pause")

    def pause_too(self, source: str) -> None:
        """While the call is paused, pause the chains of an agent, also those still to come."""
        if self.context.is_paused:
            self._paused += (source,)
            self.context.router.pause_all(source)

    def release(self) -> None:
        """Continue everything that a pause stopped."""
        sources, self._paused = self._paused, ()
        # Before the runs go on: what they start must not wait at the gate.
        self.context.pause(on=False)
        self.answers.audio.release("pause")
        for source in sources:
            self.context.router.resume_all(source)

    def target(self) -> Answer | None:
        """Return the answer that a verb would affect now; ``None`` for none."""
        return self.answers.newest_answer_of(self.context.floor.heard)

    def works(self, answer: Answer | None) -> tuple[Work, ...]:
        """Return the running tools of an answer."""
        runs = () if answer is None else ({answer.run, *answer.active} - {None})
        found: dict[Work, None] = {}
        for run in runs:
            if run is not None:
                found.update(dict.fromkeys(self.context.running_tools.of(run)))
        return tuple(found)

    def tools_cut_with(self, cuts: Cuts) -> tuple[Work, ...]:
        """Return the tools that a verb would stop, or let finish, now."""
        if cuts == "everything":
            return tuple(self.context.running_tools)
        background = self.background_work() if cuts == "work" else []
        moved = [work.answer for work in background if isinstance(work, BackgroundAnswer)]
        tools = (work for answer in (self.target(), *moved) for work in self.works(answer))
        return tuple(dict.fromkeys((*tools, *self.left(), *background)))

    def left(self) -> list[Work]:
        """Return the tools in their grace period, of answers that a verb or a rule cut."""
        return [
            work
            for work in self.context.running_tools
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
        return len(self.context.running_tools) > 0 or bool(
            self._uncut_runs(self.context.floor.is_agent)
        )

    @property
    def works_in_background(self) -> bool:
        """Whether tools or answers work in the background."""
        return bool(self.context.running_tools.jobs)

    @property
    def is_delivering(self) -> bool:
        """Whether part of an answer that is over still waits in an async sink."""
        for run in self.context.router.async_sinks.waiting:
            is_over = run.outcome is not None and not (run.is_cut or run.is_in_background)
            if is_over and run.streams and self.context.floor.has(run.source):
                return True
        return False

    @property
    def idle_phase(self) -> AnswerPhase:
        """The phase without a current answer: ``speaking`` while the last one is delivered."""
        return "speaking" if self.is_delivering else "idle"

    @property
    def heard_runs(self) -> list[Run]:
        """The runs that may be cut, and whose output the caller hears."""
        return self._uncut_runs(self.context.floor.has)

    @property
    def undelivered(self) -> list[Run]:
        """Those of them that have ended, while part of their output waits in an async sink."""
        return [run for run in self.heard_runs if not run.is_running]

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
        return [work for work in self.context.running_tools.jobs if not _is_in_detached(work)]

    @property
    def can_be_cut(self) -> bool:
        """Whether a barge-in would cut anything that is not protected."""
        runs = self.heard_runs
        return not runs or any(not run.is_protected for run in runs)

    def _uncut_runs(self, is_meant: Callable[[str], bool]) -> list[Run]:
        """Return the runs that may be cut, of the sources that are meant."""
        return [
            run
            for runtime in self.context.router.routes
            if is_meant(runtime.source)
            for run in runtime.runs
            if not (run.is_cut or run.is_in_background or run.is_settled)
        ]


class VerbUse:
    """One use of a verb: acts on the work of the call, and keeps what that cut.

    Attributes:
        receipt: Its receipt.
        for_tools: The verb that tools see.
        pause_tools: What a pause does to the tools of the answer.
        targets: What it acts on.
        context: What the parts of the call share.
        router: The call's.
        answers: What is said in the call.
        runs: The runs that were cut.
        works: The tools that were interrupted.
    """

    __slots__ = (
        "answers", "context", "for_tools", "pause_tools", "receipt", "router", "runs", "targets",
        "works",
    )  # fmt: skip

    def __init__(
        self,
        targets: VerbTargets,
        receipt: Receipt,
        for_tools: Verb,
        pause_tools: PauseTools = "finish",
    ) -> None:
        self.targets = targets
        self.context, self.answers = targets.context, targets.answers
        self.router = self.context.router
        self.receipt = receipt
        self.for_tools: Verb = for_tools
        self.pause_tools: PauseTools = pause_tools
        self.runs: list[Run] = []
        self.works: list[Work] = []

    def adopt(self, earlier: VerbUse) -> None:
        """Answer for the unfinished work that an earlier verb cut, too."""
        self.runs += earlier.runs
        self.works += earlier.works

    @property
    def everybody(self) -> tuple[str, ...]:
        return (*self.context.floor.agents, "call")

    def run_cut(self, run: Run) -> None:
        """Interrupt the tools of a run that was just cut."""
        self.runs.append(run)
        self.interrupt(*self.context.running_tools.of(run))

    def interrupt(self, *works: Work) -> None:
        for work in works:
            self.receipt.took(work, work.interrupt(self.for_tools))
            if work not in self.works:
                self.works.append(work)

    def cut(self, message: Message, *, background: bool = False) -> None:
        """Cut what the agent that has the floor does, and the tools that an earlier cut left.

        Args:
            background: Whether to cut what works in the background, too.
        """
        verb = self.receipt.verb
        for source in self.context.floor.heard:
            self.router.cut_all(verb, source, message, background=background)
        self.answers.stop_all(message)
        # An earlier cut left these in their grace period: no run is cut for them now.
        self.interrupt(*self.targets.left())
        # A cut ends a pause, too.
        self.targets.release()

    def return_input(self, sources: Iterable[str]) -> None:
        """Return the user's words whose answers will not start now to the receipt."""
        router = self.router
        waiting = [each.id for source in sources for each in router.waiting(source)]
        if waiting:
            texts = self.answers.memory.give_back_input(self.answers.answered, max(waiting))
            self.receipt.give_back(texts)
            for text in texts:
                router.publish_detached(InputReturned(content=text), "call")


def accept_input(router: Router, text: str) -> None:
    """Let the caller say something."""
    router.publish_detached(UserTranscriptionReceived(content=text), "caller")
    router.publish_detached(UserStoppedSpeaking(), "caller")


def _is_in_detached(work: Work) -> bool:
    """Whether a tool works for another one that continues as a detached job."""
    outer = work.inside
    while outer is not None:
        if outer.run is None and outer.policy == "detach":
            return True
        outer = outer.inside
    return False
