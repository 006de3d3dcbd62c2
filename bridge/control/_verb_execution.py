"""Executes the verbs of a call, and writes their receipts.

Every verb arrives as an event, ``ControlRequested`` or ``EmergencyStop``, and takes effect in the
step in which the event is published.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

import trio

from bargein.routes import Message, Run
from bargein.routes.logs import get_logger

from .._verbs import VERBS, PauseTools, Verb
from ..context._running_tools import Work
from ..context._verb_receipt import Receipt
from ..events import ControlRequested, EmergencyStop
from ..validation._verb_arguments import check_string, check_word
from ._verb_actions import VerbActions
from ._verb_targets import VerbTargets

if TYPE_CHECKING:
    from ..answers._answer import Answer
    from ..answers._call_answers import CallAnswers
    from ..context._call_context import CallContext
    from ._questions import Questions


log = get_logger()

UNWIND_S = 1.0
"""How many seconds a handler waits for cut tools; the same as for a cut run."""

SHUTDOWN_S = 5.0
"""How many seconds ``shutdown()`` waits for tools by default."""

_STOPPING = ("cancel", "emergency_stop", "shutdown")
_CUTTING = (*_STOPPING, "redirect", "barge_in")


class Control:
    """The verbs of one call.

    Attributes:
        targets: Finds what a verb would act on now.
        target: Returns the answer that a verb would affect now; ``None`` for none.
        pause_too: Pauses the chains of an agent too, while the call is paused.
        run_cut: Interrupts the tools of a cut run, in the same step; called by the call.
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
        self._context = context
        self._answers = answers
        self._router = context.router
        targets = self.targets = VerbTargets(context, answers)
        self.target = targets.target
        self._actions = VerbActions(context, answers, targets)
        self.pause_too = self._actions.pause_too
        self.run_cut = self._actions.run_cut
        self._questions = questions
        self._why_not = why_not
        self._settle_state = settle_state
        self._end = end
        self._pause_tools: PauseTools = "finish"
        self._receipts = 0
        self._users = 0
        self._receipt_of: dict[int, Receipt] = {}
        self._under_way: Receipt | None = None
        self._unsettled: list[Receipt] = []
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
        works = (work for work in self.targets.works(self.target()) if work.moving_from is None)
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
        check_word("use", "verb", verb, VERBS)
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
        runs, works = self._actions.cut_one(answer, receipt)
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
            if verb == "redirect":  # another one: its text counts too
                self._actions.accept_input(message.event.text)
        else:
            receipt = self._receipt(verb, self._why_not(verb), self.target())
            if receipt.accepted:
                self._perform(receipt, message)
            elif verb == "redirect" and not self.is_closing:
                self._actions.accept_input(message.event.text)  # no words of the user get lost
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
        phase = self.targets.idle_phase if answer is None else answer.seen_phase
        if answer is None and self.is_stopping:
            phase = "stopping"
        return Receipt(self._receipts, verb, answer.number if answer else None, phase, reason)

    # --- what a verb does -------------------------------------------------------------------------

    def _perform(self, receipt: Receipt, message: Message) -> None:
        self._settle_state()  # the state may be unpublished within a publication
        before = self._under_way
        if before is not None and receipt.verb != "resume":
            receipt.supersede(before)
        if receipt.verb != "resume":
            self._under_way = receipt
            self._keep_unsettled(receipt)
        actions = self._actions
        actions.start_record(receipt, adopts=self._is_cutting(before))
        try:
            actions.carry_out(receipt, message, pause_tools=self._pause_tools)
            if receipt.verb == "resume":
                self._under_way = None
                receipt.settle()
            elif receipt.verb == "pause":
                self._context.start_soon(self._settle_pause, receipt, actions.works)
            elif receipt.verb == "shutdown":
                self._context.start_soon(self._close, receipt, actions.runs, actions.works)
        finally:
            self._router.report_cuts()
            actions.end_record()
        if receipt.upgraded_from in _CUTTING:  # a cut answer has only one record
            self._answers.upgrade(receipt.answer, receipt.verb)
        if before is not None and before is not receipt and not before.settled:
            self._context.start_soon(settle_with, before, receipt)
        if receipt.verb not in ("resume", "pause", "shutdown") and not receipt.settled:
            self._context.start_soon(self._settle, receipt, actions.runs, actions.works)
        self._context.touch_state()

    def _keep_unsettled(self, receipt: Receipt) -> None:
        """Settle a receipt at the end of the call at the latest."""
        self._unsettled = [one for one in self._unsettled if not one.settled]
        self._unsettled.append(receipt)

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


LAST_S = 10.0
"""How many seconds after a tool's last deadline a verb counts as settled anyway."""


async def stopped_work_ended(receipt: Receipt, runs: list[Run], works: list[Work]) -> None:
    """Wait until everything that a verb stopped is over, at most until its last deadline.

    It does not wait for tools that moved to the background.  Cancelling this is safe.

    Args:
        receipt: The verb's.
        runs: The runs that it cut.
        works: The tools that it interrupted, or that a pause lets finish.
    """
    for run in runs:
        await run.finished()
    ends_s = max(
        (still.deadline_s for still in receipt.still_running if still.deadline_s < math.inf),
        default=trio.current_time(),
    )
    limit_s = math.inf if receipt.verb == "pause" else ends_s + LAST_S
    with trio.move_on_at(limit_s) as scope:
        moved = {still.id for still in receipt.still_running if still.deadline_s == math.inf}
        for work in works:
            if work.id not in moved:
                await work.done.wait()
    if scope.cancelled_caught:
        log.warning("verb_not_settled", verb=receipt.verb, waited_s=LAST_S)


async def until(condition: Callable[[], bool], context: CallContext) -> None:
    """Wait until a condition is true, which is tested after each change of the call.

    Cancelling this is safe.
    """
    met = trio.Event()

    def test() -> None:
        if condition():
            met.set()

    test()
    context.observe_changes(test)
    try:
        await met.wait()
    finally:
        context.forget_changes(test)


async def settle_with(weaker: Receipt, stronger: Receipt) -> None:
    """Settle the receipt of a verb with that of the stronger verb that took over its work."""
    await stronger.settled
    weaker.settle()
