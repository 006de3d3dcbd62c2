"""Executes the verbs of a call, and writes their receipts.

Every verb arrives as an event, ``ControlRequested`` or ``EmergencyStop``, and takes effect in the
step in which the event is published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, get_args

import trio

from bargein.routes import Message, Run
from bargein.routes.logs import get_logger

from .._verbs import PauseTools, Verb
from ..events import (
    ControlRequested,
    EmergencyStop,
    InputReturned,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from ._running_tools import Work
from ._verb_argument_checks import check_string, check_verb
from ._verb_receipt import Receipt
from ._verb_settling import settle_with, stopped_work_ended, until
from ._verb_targets import VerbTargets

if TYPE_CHECKING:
    from .._call_context import CallContext
    from ..answers._answer import Answer
    from ..answers._call_answers import CallAnswers
    from ._questions import Questions

log = get_logger()

UNWIND_S = 1.0
"""How many seconds a handler waits for cut tools; the same as for a cut run."""

SHUTDOWN_S = 5.0
"""How many seconds ``shutdown()`` waits for tools by default."""

_STOPPING = ("cancel", "emergency_stop", "shutdown")
_CUTTING = (*_STOPPING, "redirect", "barge_in")


class Control(VerbTargets):
    """The verbs of one call.

    Attributes:
        pause_tools: What a pause does to the tools of the answer: ``finish`` (they continue, and
            what follows waits), ``cancel`` or ``detach``.
    """

    def __init__(
        self,
        context: CallContext,
        answers: CallAnswers,
        questions: Questions,
        *,
        why_not: Callable[[Verb], str],
        settle_state: Callable[[], None],
        end: Callable[[str], None],
    ) -> None:
        """Listen for verbs.

        Args:
            context: The call's.
            answers: What is said in the call.
            questions: The questions of tools to the caller.
            why_not: Returns why a verb would do nothing now; empty if it would do something.
            settle_state: Publishes the current state.
            end: Ends the call, for a reason.
        """
        super().__init__(context, answers)
        self._router = context.router
        self._questions = questions
        self._why_not = why_not
        self._settle_state = settle_state
        self._end = end
        self._pause_tools: PauseTools = "finish"
        self._receipts = 0
        self._users = 0
        self._receipt_of: dict[int, Receipt] = {}
        self._under_way: Receipt | None = None
        self._performing: Receipt | None = None
        self._unsettled: list[Receipt] = []
        self._runs: list[Run] = []
        self._works: list[Work] = []
        self._paused: tuple[str, ...] = ()
        self._shutdown_s = SHUTDOWN_S
        # Before the rules, so that the verb's receipt covers what a rule cuts by the same event.
        context.router.observe(ControlRequested, self._requested, before_rules=True)
        context.router.observe(EmergencyStop, self._emergency, before_rules=True)

    # --- what is known --------------------------------------------------------------------------

    @property
    def is_paused(self) -> bool:
        """Whether the call is paused."""
        return self._context.is_paused

    @property
    def is_closing(self) -> bool:
        """Whether nothing new is accepted any more."""
        return self._context.is_closing

    @property
    def pause_tools(self) -> PauseTools:
        """What a pause does to the tools of the answer."""
        return self._pause_tools

    @pause_tools.setter
    def pause_tools(self, meaning: PauseTools) -> None:
        if meaning not in get_args(PauseTools):
            known = ", ".join(get_args(PauseTools))
            raise ValueError(f"pause_tools is one of {known}, not {meaning!r}")
        self._pause_tools = meaning

    @property
    def is_stopping(self) -> bool:
        """Whether cancelled work has not ended yet."""
        way = self._under_way
        if way is None or way.verb not in _STOPPING:
            return False
        return way.verb == "shutdown" or not way.settled

    @property
    def under_way(self) -> Verb | None:
        """The verb that is still taking effect, or ``pause`` while it lasts; ``None`` for none."""
        return self._under_way.verb if self._under_way is not None else None

    @staticmethod
    def _is_cutting(way: Receipt | None) -> bool:
        """Whether the work that a verb cut has not ended yet."""
        return way is not None and not way.settled and way.verb in _CUTTING

    @property
    def pause_waits(self) -> bool:
        """Whether a pause is waiting for running tools to finish."""
        return self.pause_tools == "finish" and self._runs_on

    @property
    def _runs_on(self) -> bool:
        """Whether a tool of the answer runs on in a pause."""
        works = (work for work in self.works(self.target()) if work.moving_from is None)
        return any(work.outcome is None and self._still_runs(work) for work in works)

    def _still_runs(self, work: Work) -> bool:
        """Whether a tool continues in a pause: it has started, and does not only wait."""
        if work.started_at_s is None or work.is_waiting:
            return False
        return not self._questions.is_waiting(work.id)

    # --- how a verb arrives -----------------------------------------------------------------------

    def use(self, verb: Verb, text: str = "", *, source: str = "handle") -> Receipt:
        """Use a verb now, and return its receipt.

        Args:
            verb: The verb.
            text: The instruction of ``redirect``, or the note of ``resume``.
            source: Who uses it.

        Raises:
            ValueError: There is no such verb.
            TypeError: The text is not a string.
        """
        check_verb("use", verb)
        check_string(verb, "text", text)
        event = (
            EmergencyStop() if verb == "emergency_stop" else ControlRequested(verb=verb, text=text)
        )
        self._users += 1
        try:
            message = self._router.publish_detached(event, source)
            receipt = self._receipt_of.get(message.id)
        finally:
            self._users -= 1
            if not self._users:
                self._receipt_of.clear()
        if receipt is None:  # the call is over: events have no effect any more
            receipt = self._receipt(verb, "the call is over", self.target())
        return receipt

    def interrupt(self, answer: Answer | None, reason: str) -> Receipt:
        """Cut one answer, regardless of any condition, and return the receipt; for its handle.

        Args:
            answer: Its answer; ``None`` if it has not started.
            reason: Why there is nothing to do; empty to cut it.
        """
        if self._answers.is_closed:
            reason = reason or "the call is over"
        receipt = self._receipt("barge_in", reason, answer)
        if receipt.accepted and answer is None:
            receipt.settle()
        elif receipt.accepted and answer is not None:
            self._cut_one(answer, receipt)
        log.info(
            "answer_interrupted", answer=receipt.answer, accepted=receipt.accepted, reason=reason
        )
        return receipt

    def _cut_one(self, answer: Answer, receipt: Receipt) -> None:
        """Cut only one answer; this neither starts nor takes over a verb."""
        outer = self._performing, self._runs, self._works
        self._performing, self._runs, self._works = receipt, [], []
        try:
            self._answers.cut(answer, "its handle was interrupted")
        finally:
            runs, works = self._runs, self._works
            self._performing, self._runs, self._works = outer
        self._keep_unsettled(receipt)
        self._context.start_soon(self._settle, receipt, runs, works)
        self._context.touch_state()

    def shut_down(self, deadline_s: float) -> Receipt:
        """Refuse new work, cancel, and end the call once its tools are over."""
        self._shutdown_s = deadline_s
        return self.use("shutdown", source="handle")

    def _requested(self, message: Message) -> None:
        self._apply(message.event.verb, message)

    def _emergency(self, message: Message) -> None:
        self._apply("emergency_stop", message)

    def _apply(self, verb: Verb, message: Message) -> None:
        way = self._under_way
        if way is not None and way.verb == verb and self._same_target(way):
            receipt = way
            if verb == "redirect":
                self._accept_input(message.event.text)  # another redirect: its text counts too
        else:
            receipt = self._receipt(verb, self._why_not(verb), self.target())
            if receipt.accepted:
                self._perform(receipt, message)
            elif verb == "redirect" and not self.is_closing:
                self._accept_input(message.event.text)  # no words of the user get lost
        if self._users:  # use() is waiting for it
            self._receipt_of[message.id] = receipt
        if receipt is not way:  # who presses Stop a hundred times fills no log
            _log(receipt)

    def _same_target(self, way: Receipt) -> bool:
        """Whether a repeated verb refers to the work that it is already taking effect on."""
        answer = self.target()
        return not way.settled and (answer is None or answer.number == way.answer)

    def _receipt(self, verb: Verb, reason: str, answer: Answer | None) -> Receipt:
        self._receipts += 1
        phase = self.idle_phase if answer is None else answer.seen_phase
        if answer is None and self.is_stopping:
            phase = "stopping"
        return Receipt(self._receipts, verb, answer.number if answer else None, phase, reason)

    # --- what a verb does -------------------------------------------------------------------------

    def _perform(self, receipt: Receipt, message: Message) -> None:
        self._settle_state()  # the state may be unpublished within a publication
        before = self._under_way
        if before is not None and receipt.verb != "resume":
            receipt.supersede(before)
        self._performing = receipt
        if receipt.verb != "resume":
            self._under_way = receipt
            self._keep_unsettled(receipt)
            self._adopt_work(before)
        try:
            getattr(self, f"_do_{receipt.verb}")(receipt, message)
        finally:
            self._router.report_cuts()
            self._performing = None
        if receipt.upgraded_from in _CUTTING:
            self._upgrade_record(receipt)
        if before is not None and before is not receipt and not before.settled:
            self._context.start_soon(settle_with, before, receipt)
        if receipt.verb not in ("resume", "pause", "shutdown") and not receipt.settled:
            self._context.start_soon(self._settle, receipt, self._runs, self._works)
        self._context.touch_state()

    def _keep_unsettled(self, receipt: Receipt) -> None:
        """Settle a receipt at the end of the call at the latest."""
        self._unsettled = [one for one in self._unsettled if not one.settled]
        self._unsettled.append(receipt)

    def _adopt_work(self, before: Receipt | None) -> None:
        """Take responsibility for unfinished work that a weaker verb cut."""
        cuts = self._is_cutting(before)
        self._runs = list(self._runs) if cuts else []
        self._works = list(self._works) if cuts else []

    def _upgrade_record(self, receipt: Receipt) -> None:
        """Name the stronger verb in the record of a cut answer, which has only one record."""
        self._answers.upgrade(receipt.answer, receipt.verb)

    def _do_pause(self, receipt: Receipt, message: Message) -> None:
        self._context.pause(on=True)
        self._paused = ()
        for source in (*self._context.floor.agents, "call"):
            self.pause_too(source)
        answer = self.target()
        self._answers.hold("pause")
        if answer is not None:
            answer.stand("pause", message.at_s)
            self._answers.note_pause(answer, message)
        for work in self.works(answer):
            if self.pause_tools == "cancel":
                self._interrupt(work, "cancel")
            elif self.pause_tools == "detach":
                work.to_background()
        self._context.start_soon(self._settle_pause, receipt, self._works)

    def floor_moved(self) -> None:
        """Record that the floor has moved."""
        self._answers.floor_moved()

    def pause_too(self, source: str) -> None:
        """While the call is paused, pause the chains of an agent, also those still to come."""
        if self.is_paused:
            self._paused += (source,)
            self._router.pause_all(source)

    def _do_resume(self, receipt: Receipt, message: Message) -> None:
        answer = self.target()
        receipt.aim_at(answer.number if answer else None)
        step = answer.step if answer is not None else 0
        self._answers.note_resumed(step, message.event.text.strip())
        if answer is not None:
            answer.resume("pause", message.at_s)
        self._release()
        self._under_way = None
        receipt.settle()

    def _release(self) -> None:
        """Continue everything that a pause stopped."""
        sources, self._paused = self._paused, ()
        self._context.pause(on=False)
        self._answers.release("pause")
        for source in sources:
            self._router.resume_all(source)

    def _do_cancel(self, receipt: Receipt, message: Message) -> None:
        background = self._background_work()
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
            texts = self._answers.give_back_input(max(waiting))
            receipt.give_back(texts)
            for text in texts:
                router.publish_detached(InputReturned(content=text), "call")

    def _do_redirect(self, receipt: Receipt, message: Message) -> None:
        self._cut(receipt.verb, message)
        self._accept_input(message.event.text)

    def _accept_input(self, text: str) -> None:
        router = self._router
        router.publish_detached(UserTranscriptionReceived(content=text), "caller")
        router.publish_detached(UserStoppedSpeaking(), "caller")

    def _do_emergency_stop(self, receipt: Receipt, message: Message) -> None:
        self._answers.cut_moving(message)
        everybody = (*self._context.floor.agents, "call")
        self._return_input(receipt, everybody)
        for source in everybody:
            self._router.cut_all("emergency stop", source, message)
        self._answers.stop_all(message)
        for work in self._context.running_tools:
            self._interrupt(work, "emergency_stop")
        self._release()

    def _do_barge_in(self, receipt: Receipt, message: Message) -> None:
        at_work = self.target() is not None
        for run in self._uncut_runs(self._context.floor.has) if at_work else self.undelivered:
            if not run.is_protected:
                run.cut(message, reason="barge_in")

    def _do_background(self, receipt: Receipt, message: Message) -> None:
        answer = self.target()
        assert answer is not None  # the table says so
        works = self.works(answer)
        self._answers.move_to_background(answer)
        for work in works:
            work.notify_background()
        self._release()

    def _do_shutdown(self, receipt: Receipt, message: Message) -> None:
        self._context.close()
        self._answers.end_cuts_as("shutdown")
        self._answers.cut_moving(message)
        self._return_input(receipt, (*self._context.floor.agents, "call"))
        self._cut(receipt.verb, message)
        for work in self._context.running_tools:
            self._interrupt(work, "cancel")
        self._context.start_soon(self._close, receipt, self._runs, self._works)

    def _cut(self, verb: Verb, message: Message) -> None:
        for source in self._context.floor.heard:
            self._router.cut_all(verb, source, message, background=verb == "shutdown")
        self._answers.stop_all(message)
        for work in self._left():
            self._interrupt(work, as_tools_see(verb))
        self._release()

    def run_cut(self, run: Run) -> None:
        """Interrupt the tools of a cut run, in the same step; called by the call."""
        verb: Verb = "barge_in"
        if self._performing is not None:
            verb = as_tools_see(self._performing.verb)
            self._runs.append(run)
        for work in self._context.running_tools.of(run):
            self._interrupt(work, verb)

    async def cut_tools_end(self, run: Run) -> None:
        """Wait, for a bounded time, until the tools cut with a run have their outcomes."""
        with trio.move_on_after(UNWIND_S):
            for work in self._context.running_tools.of(run):
                if work.interrupt("barge_in") is None:  # done before, by this or a stronger verb
                    await work.done.wait()

    def move_run(self, run: Run) -> None:
        """Move the answer of a run to the background, as its token requested; the call's."""
        answer = self._answers.answer_of(run)
        if answer is not None and answer is self.target():
            self.use("background", source="token")

    def _interrupt(self, work: Work, verb: Verb) -> None:
        still = work.interrupt(verb)
        if self._performing is not None:
            self._performing.took(work, still)
            if work not in self._works:
                self._works.append(work)

    # --- settling ---------------------------------------------------------------------------------

    async def _settle(self, receipt: Receipt, runs: list[Run], works: list[Work]) -> None:
        """Wait until all the work that a verb stopped is over, then settle its receipt."""
        await stopped_work_ended(receipt, runs, works)
        receipt.settle()
        if self._under_way is receipt and receipt.verb != "pause":
            self._under_way = None
        self._context.touch_state()

    async def _settle_pause(self, receipt: Receipt, works: list[Work]) -> None:
        """Settle a pause once no tool of the answer runs any more: the others stand still."""
        await until(lambda: not self._runs_on, self._context)
        await self._settle(receipt, [], works)

    # --- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Settle every receipt, because the call is over."""
        self._context.close()
        for receipt in self._unsettled:
            receipt.settle()
        self._unsettled.clear()

    async def _close(self, receipt: Receipt, runs: list[Run], works: list[Work]) -> None:
        with trio.move_on_after(self._shutdown_s):
            await stopped_work_ended(receipt, runs, works)
        for work in self._context.running_tools:
            work.interrupt("shutdown")
        self._end("shutdown")
        receipt.settle()


def as_tools_see(verb: Verb) -> Verb:
    """Return the verb for tools; in a shutdown they have until its deadline, as in a cancel."""
    return "cancel" if verb == "shutdown" else verb


def _log(receipt: Receipt) -> None:
    log.info(
        "verb_used",
        verb=receipt.verb,
        answer=receipt.answer,
        accepted=receipt.accepted,
        reason=receipt.reason,
        upgraded_from=receipt.upgraded_from,
        stopped=len(receipt.stopped),
        still_running=len(receipt.still_running),
    )
