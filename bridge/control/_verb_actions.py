"""What each verb does to the work of a call, in the step in which it is used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from bargein.routes import Message, Run

from .._verbs import PauseTools, Verb
from ..context._running_tools import Work
from ..context._verb_receipt import Receipt
from ..events import InputReturned, UserStoppedSpeaking, UserTranscriptionReceived
from ._verb_targets import VerbTargets

if TYPE_CHECKING:
    from ..answers._answer import Answer
    from ..answers._call_answers import CallAnswers
    from ..context._call_context import CallContext


class VerbActions:
    """Carries out the verbs of one call, and keeps what the last one cut.

    Attributes:
        runs: The runs that the verb under way cut.
        works: The tools that it interrupted.
    """

    __slots__ = (
        "_answers", "_context", "_paused", "_performing", "_router", "_targets", "runs", "works",
    )  # fmt: skip

    def __init__(self, context: CallContext, answers: CallAnswers, targets: VerbTargets) -> None:
        """Start without a verb under way.

        Args:
            context: The call's.
            answers: What is said in the call.
            targets: Finds what a verb acts on.
        """
        self._context = context
        self._router = context.router
        self._answers = answers
        self._targets = targets
        self._performing: Receipt | None = None
        self._paused: tuple[str, ...] = ()
        self.runs: list[Run] = []
        self.works: list[Work] = []

    def start_record(self, receipt: Receipt, *, adopts: bool) -> None:
        """Note what is cut from now on in a receipt.

        Args:
            receipt: The receipt of the verb.
            adopts: Whether it answers for unfinished work that the verb before it cut.
        """
        self._performing = receipt
        if receipt.verb != "resume":
            self.runs = list(self.runs) if adopts else []
            self.works = list(self.works) if adopts else []

    def end_record(self) -> None:
        """Note nothing more."""
        self._performing = None

    def carry_out(self, receipt: Receipt, message: Message, *, pause_tools: PauseTools) -> None:
        """Let a verb take effect, between ``start_record()`` and ``end_record()``.

        Args:
            receipt: Its receipt.
            message: The message that requested it.
            pause_tools: What a pause does to the tools of the answer.
        """
        match receipt.verb:
            case "pause":
                self._pause(message, pause_tools)
            case "resume":
                self._resume(receipt, message)
            case "cancel":
                self._cancel(receipt, message)
            case "redirect":
                self._cut(receipt.verb, message)
                self.accept_input(message.event.text)
            case "emergency_stop":
                self._emergency_stop(receipt, message)
            case "barge_in":
                self._barge_in(message)
            case "background":
                self._move_to_background()
            case "shutdown":
                self._shut_down(receipt, message)

    def cut_one(self, answer: Answer, receipt: Receipt) -> tuple[list[Run], list[Work]]:
        """Cut only one answer, beside any verb under way, and return what that cut."""
        outer = self._performing, self.runs, self.works
        self._performing, self.runs, self.works = receipt, [], []
        try:
            self._answers.cut(answer, "its handle was interrupted")
        finally:
            runs, works = self.runs, self.works
            self._performing, self.runs, self.works = outer
        return runs, works

    def _pause(self, message: Message, pause_tools: PauseTools) -> None:
        self._context.pause(on=True)
        self._paused = ()
        for source in (*self._context.floor.agents, "call"):
            self.pause_too(source)
        answer = self._targets.target()
        self._answers.audio.hold("pause")
        if answer is not None:
            answer.stand("pause", message.at_s)
            self._answers.cuts.note_pause(answer, message)
        for work in self._targets.works(answer):
            if pause_tools == "cancel":
                self._interrupt(work, "cancel")
            elif pause_tools == "detach":
                work.to_background()

    def pause_too(self, source: str) -> None:
        """While the call is paused, pause the chains of an agent, also those still to come."""
        if self._context.is_paused:
            self._paused += (source,)
            self._router.pause_all(source)

    def _resume(self, receipt: Receipt, message: Message) -> None:
        answer = self._targets.target()
        receipt.aim_at(answer.number if answer else None)
        step = answer.step if answer is not None else 0
        self._answers.memory.note_resumed(step, message.event.text.strip())
        if answer is not None:
            answer.resume("pause", message.at_s)
        self._release()

    def _release(self) -> None:
        """Continue everything that a pause stopped."""
        sources, self._paused = self._paused, ()
        self._context.pause(on=False)
        self._answers.audio.release("pause")
        for source in sources:
            self._router.resume_all(source)

    def _cancel(self, receipt: Receipt, message: Message) -> None:
        background = self._targets.background_work()
        self._answers.cut_moving(message)
        self._return_input(receipt, self._context.floor.heard)
        self._cut(receipt.verb, message)
        for work in background:
            self._interrupt(work, receipt.verb)

    def _return_input(self, receipt: Receipt, sources: Iterable[str]) -> None:
        """Return the user's words whose answers will not start now to the receipt."""
        router = self._router
        waiting = [each.id for source in sources for each in router.waiting(source)]
        if waiting:
            texts = self._answers.memory.give_back_input(self._answers.answered, max(waiting))
            receipt.give_back(texts)
            for text in texts:
                router.publish_detached(InputReturned(content=text), "call")

    def accept_input(self, text: str) -> None:
        """Let the caller say what a redirect asks for."""
        router = self._router
        router.publish_detached(UserTranscriptionReceived(content=text), "caller")
        router.publish_detached(UserStoppedSpeaking(), "caller")

    def _emergency_stop(self, receipt: Receipt, message: Message) -> None:
        self._answers.cut_moving(message)
        everybody = (*self._context.floor.agents, "call")
        self._return_input(receipt, everybody)
        for source in everybody:
            self._router.cut_all("emergency stop", source, message)
        self._answers.stop_all(message)
        for work in self._context.running_tools:
            self._interrupt(work, "emergency_stop")
        self._release()

    def _barge_in(self, message: Message) -> None:
        targets = self._targets
        at_work = targets.target() is not None
        runs = targets.uncut_runs(self._context.floor.has) if at_work else targets.undelivered
        for run in runs:
            if not run.is_protected:
                run.cut(message, reason="barge_in")

    def _move_to_background(self) -> None:
        answer = self._targets.target()
        assert answer is not None  # the table says so
        works = self._targets.works(answer)
        self._answers.move_to_background(answer)
        for work in works:
            work.notify_background()
        self._release()

    def _shut_down(self, receipt: Receipt, message: Message) -> None:
        self._context.close()
        self._answers.cuts.end_as("shutdown")
        self._answers.cut_moving(message)
        self._return_input(receipt, (*self._context.floor.agents, "call"))
        self._cut(receipt.verb, message)
        for work in self._context.running_tools:
            self._interrupt(work, "cancel")

    def _cut(self, verb: Verb, message: Message) -> None:
        for source in self._context.floor.heard:
            self._router.cut_all(verb, source, message, background=verb == "shutdown")
        self._answers.stop_all(message)
        for work in self._targets.left():
            self._interrupt(work, as_tools_see(verb))
        self._release()

    def run_cut(self, run: Run) -> None:
        """Interrupt the tools of a cut run, in the same step; called by the call."""
        verb: Verb = "barge_in"
        if self._performing is not None:
            verb = as_tools_see(self._performing.verb)
            self.runs.append(run)
        for work in self._context.running_tools.of(run):
            self._interrupt(work, verb)

    def _interrupt(self, work: Work, verb: Verb) -> None:
        still = work.interrupt(verb)
        if self._performing is not None:
            self._performing.took(work, still)
            if work not in self.works:
                self.works.append(work)


def as_tools_see(verb: Verb) -> Verb:
    """Return the verb for tools; in a shutdown they have until its deadline, as in a cancel."""
    return "cancel" if verb == "shutdown" else verb
