"""Executes the verbs of a call, says what they would do, and writes their receipts.

Every verb arrives as an event, ``ControlRequested`` or ``EmergencyStop``, and takes effect in the
step in which the event is published.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, get_args

import trio

from bargein.routes import Message, Run
from bargein.routes.logs import get_logger

from .._verbs import VERBS, PauseTools, Verb
from ..context._running_tools import Work
from ..context._verb_receipt import Receipt
from ..events import ControlRequested, EmergencyStop
from ..history._history import ToolEntry
from ..validation._verb_arguments import check_string, check_word
from ._verb_use import VerbTargets, VerbUse, accept_input
from .verbs import ROWS

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

NOTICE_IS_CUT = "speech that is not interruptible is cut too"
"""Such as a legal notice.  It is protected from the caller's voice, which is no decision.  A verb
is somebody's decision, and a stop that left the agent talking would be none.  The code that said it
sees from its outcome that it was not heard, and can say it again."""

NOTICE_IS_HEARD = "speech that is not interruptible is heard to its end"


class VerbExecution:
    """The verbs of one call.

    Attributes:
        targets: Finds what a verb would act on now.
        target: Returns the answer that a verb would affect now; ``None`` for none.
        pause_too: Pauses the chains of an agent too, while the call is paused.
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
            why_not: Returns why a verb would do nothing now; empty if it would do something.
        """
        self._context = context
        self._answers = answers
        self._router = context.router
        self.targets = VerbTargets(context, answers)
        self.target = self.targets.target
        self.pause_too = self.targets.pause_too
        self._questions = questions
        self._why_not = why_not
        self._settle_state = settle_state
        self._end = end
        self._pause_tools: PauseTools = "finish"
        self._receipts = 0
        self._users = 0
        self._receipt_of: dict[int, Receipt] = {}
        self._under_way: Receipt | None = None
        self._performing: VerbUse | None = None
        self._last: VerbUse | None = None  # but for those that end at once
        self._unsettled: list[Receipt] = []
        self._shutdown_s = SHUTDOWN_S
        # Before the rules, so that the verb's receipt covers what a rule cuts by the same event.
        context.router.observe(ControlRequested, self._apply, before_rules=True)
        context.router.observe(EmergencyStop, self._apply, before_rules=True)

    # --- what is known --------------------------------------------------------------------------

    @property
    def is_paused(self) -> bool:
        return self._context.is_paused

    @property
    def is_closing(self) -> bool:
        """Whether nothing new is accepted any more."""
        return self._context.is_closing

    @property
    def pause_tools(self) -> PauseTools:
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
        if way is None or not ROWS[way.verb].stops:
            return False
        return ROWS[way.verb].settles == "when_closed" or not way.settled

    @property
    def under_way(self) -> Verb | None:
        """The verb that is still taking effect, or ``pause`` while it lasts; ``None`` for none."""
        return self._under_way.verb if self._under_way is not None else None

    @staticmethod
    def _is_cutting(way: Receipt | None) -> bool:
        """Whether the work that a verb cut has not ended yet."""
        return way is not None and not way.settled and ROWS[way.verb].cuts != "nothing"

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
            text: The instruction of ``redirect``, or the note of ``resume``.

        Raises:
            ValueError: There is no such verb.
            TypeError: The text is not a string.
        """
        check_word("use", "verb", verb, VERBS)
        check_string(verb, "text", text)
        self._users += 1
        try:
            message = self._router.publish_detached(ROWS[verb].request(text), source)
            receipt = self._receipt_of.get(message.id)
        finally:
            self._users -= 1
            # Only then: a verb that is used in the step of another one asks for its own receipt.
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
        use = VerbUse(self.targets, receipt, "barge_in")
        with self._noted_by(use):
            self._answers.cut(answer, "its handle was interrupted")
        self._keep_unsettled(receipt)
        self._context.start_soon(self._settle, use)
        self._context.touch_state()

    @contextmanager
    def _noted_by(self, use: VerbUse) -> Iterator[None]:
        """Let a use note what is cut in the block, beside any verb under way."""
        outer, self._performing = self._performing, use
        try:
            yield
        finally:
            self._performing = outer

    def run_cut(self, run: Run) -> None:
        """Interrupt the tools of a cut run, in the same step; called by the call."""
        if self._performing is not None:
            self._performing.run_cut(run)
            return
        for work in self._context.running_tools.of(run):
            work.interrupt("barge_in")

    def shut_down(self, deadline_s: float) -> Receipt:
        """Refuse new work, cancel, and end the call once its tools are over."""
        self._shutdown_s = deadline_s
        return self.use("shutdown", source="handle")

    def _apply(self, message: Message) -> None:
        verb: Verb = message.event.verb
        way = self._under_way
        if way is not None and way.verb == verb and self._same_target(way):
            receipt = way
            if ROWS[verb].text == "text":  # another one: its text counts too
                accept_input(self._router, message.event.text)
        else:
            receipt = self._receipt(verb, self._why_not(verb), self.target())
            if receipt.accepted:
                self._perform(receipt, message)
            elif ROWS[verb].text == "text" and not self.is_closing:
                accept_input(self._router, message.event.text)  # no words of the user get lost
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

    def describe(self, verb: Verb, *, for_caller: bool = False) -> str:
        """Return in one line, for a person, what a verb would do now.

        Args:
            for_caller: Whether to leave out the names of tools that ask the operator.
        """
        row, reason, targets = ROWS[verb], self._why_not(verb), self.targets
        if reason:
            return row.does_nothing(reason)
        parts = [row.does]
        if row.cuts != "nothing" and self._answers.audio.has_notice:
            parts.append(NOTICE_IS_HEARD if row.cuts == "speech" else NOTICE_IS_CUT)
        if row.in_background and targets.works_in_background:
            parts.append(row.in_background)
        saved = self._count_finished() if row.cuts not in ("nothing", "speech") else 0
        if saved:
            parts.append(f"{saved} result{'s are' if saved > 1 else ' is'} saved")
        works = targets.tools_cut_with(row.cuts) if row.cuts != "nothing" else ()
        shown = (work for work in works if not (for_caller and work.for_operator))
        parts += dict.fromkeys(
            f"{work.name} {work.consequence(row.as_tools_see)}" for work in shown
        )
        return f"{row.name}: {'; '.join(parts)}."

    def _count_finished(self) -> int:
        """Return how many tools of the answer have their results."""
        answer = self.target()
        since_s = math.inf if answer is None else answer.started_at_s
        return sum(
            isinstance(entry, ToolEntry) and entry.result is not None and entry.at_s >= since_s
            for entry in self._answers.history.entries
        )

    # --- what a verb does -------------------------------------------------------------------------

    def _perform(self, receipt: Receipt, message: Message) -> None:
        self._settle_state()  # the state may be unpublished within a publication
        before, row, start_soon = self._under_way, ROWS[receipt.verb], self._context.start_soon
        use = VerbUse(self.targets, receipt, row.as_tools_see, self._pause_tools)
        if row.settles != "at_once":
            if before is not None:
                receipt.supersede(before)
            if self._last is not None and self._is_cutting(before):
                use.adopt(self._last)
            self._last, self._under_way = use, receipt
            self._keep_unsettled(receipt)
        with self._noted_by(use):
            try:
                row.act(use, message)
                match row.settles:
                    case "at_once":
                        self._under_way = None
                        receipt.settle()
                    case "when_still":
                        start_soon(self._settle_pause, use)
                    case "when_closed":
                        start_soon(self._close, use)
            finally:
                # Within the use, so that the tools of the cut runs are noted for this verb.
                self._router.report_cuts()
        upgraded = receipt.upgraded_from
        if upgraded is not None and ROWS[upgraded].cuts != "nothing":
            self._answers.upgrade(receipt.answer, receipt.verb)  # a cut answer has only one record
        if before is not None and before is not receipt and not before.settled:
            start_soon(settle_with, before, receipt)
        if row.settles == "when_stopped" and not receipt.settled:
            start_soon(self._settle, use)
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

    async def _settle(self, use: VerbUse) -> None:
        """Wait until all the work that a verb stopped is over, then settle its receipt."""
        await stopped_work_ended(use)
        use.receipt.settle()
        if self._under_way is use.receipt and ROWS[use.receipt.verb].settles != "when_still":
            self._under_way = None
        self._context.touch_state()

    async def _settle_pause(self, use: VerbUse) -> None:
        """Settle a pause once no tool of the answer runs any more: the others stand still."""
        await until(lambda: not self._runs_on, self._context)
        await self._settle(use)

    # --- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Settle every receipt, because the call is over."""
        self._context.close()
        for receipt in self._unsettled:
            receipt.settle()
        self._unsettled.clear()

    async def _close(self, use: VerbUse) -> None:
        with trio.move_on_after(self._shutdown_s):
            await stopped_work_ended(use)
        # Their time is up: those that are left end without grace, as at the end of any call.
        for work in self._context.running_tools:
            work.interrupt("shutdown")
        self._end("shutdown")
        use.receipt.settle()


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


async def stopped_work_ended(use: VerbUse) -> None:
    """Wait until everything that a verb stopped is over, at most until its last deadline.

    It does not wait for tools that moved to the background.  Cancelling this is safe.
    """
    receipt = use.receipt
    is_pause = ROWS[receipt.verb].settles == "when_still"
    # A paused run does not end: only the tools that run on are waited for.
    for run in () if is_pause else use.runs:
        await run.finished()
    ends_s = max(
        (still.deadline_s for still in receipt.still_running if still.deadline_s < math.inf),
        default=trio.current_time(),
    )
    with trio.move_on_at(math.inf if is_pause else ends_s + LAST_S) as scope:
        moved = {still.id for still in receipt.still_running if still.deadline_s == math.inf}
        for work in use.works:
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

    # Before it waits: it may be true already, and then nothing changes any more.
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
