"""A chain at work in one router: its runs, who waits for whom, and why it did what it did."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
import trio

from ._errors import Interrupted, PublishLoopError, ScopeLeakError
from ._events import alias_of
from ._message import Message
from ._outcome import Decision, Verdict
from ._pipeline import Passed, Pending, Pipeline, StageError
from ._repeated_failures import Failures
from ._route import Route
from ._rules import Gate, Interrupt
from ._run import Run, _current
from ._run_stages import NOT_YET, carry_out, causes
from ._stage_results import Shape, shape_of
from ._user_errors import as_error, contain

if TYPE_CHECKING:
    from ._router import Router

log = structlog.get_logger()

DECISIONS_KEPT = 128
"""How many lines of "why?" a route keeps."""

REENTRY_LIMIT = 32
"""How often a chain of sync stages may trigger itself again before it is stopped."""

WITHHELD = "it answers a question of this agent"

ON_HOLD = "everything is held until hold_all() is taken back"

Waiting = tuple[Message, Any, "Pending | None"]
Note = tuple[float, type, int, Verdict, str, int]


@dataclass(slots=True)
class RouteStatistics:
    """What a chain has done so far."""

    started: int = 0
    cut: int = 0
    failed: int = 0
    """Runs that failed, and triggers whose sync stages did."""
    dropped: int = 0
    """Triggers that began no run: by overlap, by a full queue, or because they were stale."""
    abandoned: int = 0
    """Runs that did not unwind in time and no longer hold up the chain."""


class RouteRuntime:
    """A chain at work: it decides when runs begin, and carries them out."""

    __slots__ = (
        "_active", "_advancing", "_aside", "_held", "_makes_runs", "_notes", "_on_hold", "_pending",
        "_places", "_push", "_queue_limit", "failures", "pipeline", "removed", "route", "router",
        "rules", "source", "statistics", "suspended", "telling",
    )  # fmt: skip

    def __init__(self, route: Route, router: Router) -> None:
        self.route = route
        self.router = router
        self.source = route.source
        self.rules = route.rules
        publish = partial(router.broadcast, route.source)
        self.pipeline = Pipeline(str(route), route.stages, publish, self.works)
        self._push = self.pipeline.lead.push
        self.statistics = RouteStatistics()
        self._notes: list[Note] | None = None  # most routes of an idle call have none
        self.failures: Failures | None = None
        """What has failed and was not seen to work since; ``None`` for nothing."""
        self.suspended = False
        self.removed = False
        self._active: dict[Run, None] = {}
        self._held: dict[Run, None] = {}
        self._aside: dict[Run, None] = {}
        self._on_hold: list[tuple[Run, bool]] | None = None
        self._pending: list[Waiting] = []
        self._advancing = False
        self.telling: Interrupt | None = next(
            (r for r in self.rules if isinstance(r, Interrupt) and r.handler is not None), None
        )
        """The rule whose handler is told of a cut that no rule made."""
        trigger = route.trigger
        self._places = trigger.limit if trigger.overlap == "concurrent" else 1
        self._queue_limit = trigger.limit if trigger.overlap == "queue" else math.inf
        self._makes_runs = bool(self.rules) or bool(self.pipeline.head) or trigger.linked

    # --- triggers -----------------------------------------------------------------------------

    def trigger(self, message: Message) -> None:
        """Begin a run for a message, or do what the chain says when it cannot begin now."""
        if self.removed or (self.router.withholds is not None and self._is_withheld(message)):
            return
        if self._makes_runs:
            self._trigger_run(message)
            return
        try:
            result = self._push(message, message.run)
        except StageError as failure:
            self._failed_early(failure)
            return
        if type(result) is Pending:
            # A plain function gave something to await: this chain has runs, and so an order.
            self._makes_runs = True
            self._start(message, NOT_YET, result)

    def _is_withheld(self, message: Message) -> bool:
        """Whether this message is not for the chains of this source."""
        assert self.router.withholds is not None
        if not self.router.withholds(self.source, message):
            return False
        self._note(message, "gated", WITHHELD)
        return True

    def _trigger_run(self, message: Message) -> None:
        if self.suspended:
            self._note(message, "gated", "suspended")
            self.statistics.dropped += 1
            return
        overlap = self.route.trigger.overlap
        if self._on_hold is not None:
            self._wait_in_line(message)
            return
        if overlap == "restart":
            self._forget_waiting("overlap='restart'")
            for run in self._live():
                if not run.is_protected:
                    run.cut(message, reason="overlap='restart'")
        if self._places <= len(self._active) or self._pending:
            if overlap == "drop":
                self.statistics.dropped += 1
                self._note(message, "dropped", "overlap='drop': a run is active")
            else:
                self._wait_in_line(message)
        elif self.pipeline.head:
            self._lead_in(message)
        else:
            self._run_inline(message)

    def _wait_in_line(self, message: Message) -> None:
        if len(self._pending) >= self._queue_limit:
            self.statistics.dropped += 1
            self._note(message, "dropped", f"{len(self._pending)} triggers wait already")
            log.warning("trigger_dropped", route=str(self.route), waiting=len(self._pending))
            return
        self._note(message, "queued", f"{len(self._active)} active")
        if self.pipeline.head and len(self.pipeline.lead):
            self._lead_in(message, now=False)
        else:
            self._pending.append((message, NOT_YET, None))

    def give_up_waiting(self, meant: Callable[[Message], bool], why: str) -> list[Message]:
        """Take triggers out of the line, and return them in their order.

        Args:
            meant: Which.
            why: The reason, for people.
        """
        waiting, self._pending = self._pending, []
        given: list[Message] = []
        for message, value, pending in waiting:
            if meant(message):
                self._drop(message, pending, why)
                given.append(message)
            else:
                self._pending.append((message, value, pending))
        return given

    def takes_care_of(self, message: Message) -> bool:
        """Whether a trigger waits in line here, or a run that it began is not over."""
        begun = (run.trigger for run in self.runs if not run.is_cut)
        return message in begun or any(message is waiting for waiting, _, _ in self._pending)

    def _lead_in(self, message: Message, *, now: bool = True) -> None:
        """Run the sync stages before the first one that waits, in this very step."""
        try:
            result = self.pipeline.lead.push(message, message.run)
        except StageError as failure:
            self._failed_early(failure)
            return
        if result is None:
            return
        value, pending = (NOT_YET, result) if type(result) is Pending else (result.value, None)
        if now:
            self._start(message, value, pending)
        else:
            self._pending.append((message, value, pending))

    def _failed_early(self, failure: StageError) -> None:
        self.statistics.failed += 1
        self.router.failed(None, self, failure.stage, failure.error)

    def _start(self, message: Message, value: Any, pending: Pending | None) -> None:
        if self.router.closing is not None:
            self._drop(message, pending, f"the router is closing: {self.router.closing}")
            return
        run = self._new_run(message)
        self._start_task(run, value, pending)

    def _start_task(self, run: Run, value: Any, pending: Pending | None) -> None:
        self.router.nursery.start_soon(self._task, run, value, pending, name=self._task_name)

    @property
    def _task_name(self) -> str:
        return f"run of {self.source}: {self.route.trigger.written}"

    def _new_run(self, message: Message) -> Run:
        run = self.router.new_run(self, message)
        self._active[run] = None
        self.statistics.started += 1
        self._note(message, "matched", f"run {run.id}")
        if self.route.trigger.linked:
            run._link_to_ancestors()
        self.router.notify(self.router.on_run_start, run)
        return run

    def _run_inline(self, message: Message) -> None:
        """Carry out a run that never waits: no task, no scheduler step."""
        run = self._new_run(message)
        token = _current.set(run)
        error: Exception | None = None
        pending: Pending | Passed | None = None
        try:
            pending = self.pipeline.lead.push(message, run)
        except StageError as failure:
            error = failure
        finally:
            _current.reset(token)
        if type(pending) is Pending:
            if self.router.closing is None:
                self._start_task(run, NOT_YET, pending)
                return
            pending.discard()
        self._ended(run, error, reached_end=type(pending) is not Pending)
        self._handle_soon(run)

    # --- a run in a task ----------------------------------------------------------------------

    async def _task(self, run: Run, value: Any, pending: Pending | None) -> None:
        _current.set(run)
        error: Exception | None = None
        reached_end = False
        try:
            with run.scope:
                if not (run.is_cut or run._stop):
                    await carry_out(self.pipeline, run, value, pending)
                elif pending is not None:
                    pending.discard()
                reached_end = True
        except BaseException as exc:  # noqa: ASYNC103, BLE001 - the edge of the run: see _ended()
            error, rest = contain(exc)
            if isinstance(error, ScopeLeakError) and run.scope.cancel_called:
                error = None  # it comes of ending the run, and that is all
            if rest is not None:  # everything ends, not this run alone
                self._cast_off(run, error)
                raise rest from None  # noqa: ASYNC104 - Cancelled is in it
        if self._ended(run, error, reached_end=reached_end):
            await self._handle(run)

    def _cast_off(self, run: Run, error: Exception | None) -> None:
        if self._ended(run, error, reached_end=False):
            self._handle_soon(run)

    # --- how runs end -------------------------------------------------------------------------

    def _ended(self, run: Run, error: Exception | None, *, reached_end: bool) -> bool:
        """Give a run its outcome; False if it was abandoned before, and has one."""
        first = run.outcome is None
        if first:
            if run.is_cut:
                run.outcome = "interrupted"
            elif error is not None:
                run.outcome = "failed"
                self.statistics.failed += 1
            elif reached_end or run._stop:
                run.outcome = "completed"
                if self.failures is not None:
                    self._all_works(self.failures)
            else:
                run.outcome = self.router.closing or "shutdown"
        for stage, cause in causes(error, self.pipeline.head_name):
            # Whoever polls the token of a cut run ends it by that error, as it should.
            if not (run.is_cut and isinstance(cause, Interrupted)):
                self.router.failed(run, self, stage, cause)
        if first:
            if run._finished is not None:
                run._finished.set()
            self.router.notify(self.router.on_run_end, run)
            if run.is_settled:
                run.trigger = None
        return first

    def _handle_soon(self, run: Run) -> None:
        """Have the handler called, if there is one to call, by a task of its own."""
        if self._is_told_of(run) and not self.router.closed:
            self.router.nursery.start_soon(self._handle, run, name=f"handler of {run.source}")
        else:
            self._vacate(run)

    def _is_told_of(self, run: Run) -> bool:
        return run.is_cut and run._rule is not None and run._rule.handler is not None

    async def _handle(self, run: Run) -> None:
        """Call the handler of a run that was cut, in bounded time; then free the run's place."""
        if self._is_told_of(run):
            _current.set(None)  # what a handler publishes is no output of the run that was cut
            await self._call_handler(run)
        self._vacate(run)

    async def _call_handler(self, run: Run) -> None:
        rule = run._rule
        assert rule is not None
        assert rule.handler is not None
        assert run.interruption is not None
        limit_s = self.router.handler_s
        until_s = trio.current_time() + limit_s + 1.0
        self.router.call_at(run, until_s, partial(self.abandon, run, "handler"))
        with trio.move_on_after(limit_s, shield=True) as scope:
            try:
                interruption = run.interruption
                if self.router.told_of is not None:
                    interruption = await self.router.told_of(run, interruption)
                result = rule.handler(interruption.cause, interruption)
                if shape_of(result) is Shape.AWAITABLE:
                    await result
            except BaseException as error:  # noqa: ASYNC103 - told, and the next turn works
                told, rest = contain(error)
                if told is not None:
                    self.router.failed(run, self, str(rule), told)
                if rest is not None:
                    raise
        if scope.cancelled_caught:
            log.warning("handler_too_slow", route=str(self.route), rule=str(rule), limit_s=limit_s)

    def _vacate(self, run: Run) -> None:
        self.router.forget(run)
        if run in self._aside:
            del self._aside[run]
            self._leave_if_done()
        elif run in self._active:
            del self._active[run]
            if run._holds and not run.is_cut:
                self._held[run] = None
            self._next()
            self._leave_if_done()

    def _next(self) -> None:
        """Begin the runs that waited for a place."""
        if self._advancing:
            return
        self._advancing = True
        turns = len(self._pending) + REENTRY_LIMIT
        try:
            while self._pending and self._has_place and not self.router.closing:
                message, value, pending = self._pending.pop(0)
                turns -= 1
                if message.is_stale:
                    self._drop(message, pending, "what caused it was cut")
                elif not turns:
                    loop = PublishLoopError(message.alias, REENTRY_LIMIT)
                    self._forget_waiting("the chain triggers itself")
                    self.router.failed(None, self, self.route.trigger.written, loop)
                elif self.pipeline.head or pending is not None:
                    self._start(message, value, pending)
                else:
                    self._run_inline(message)
        finally:
            self._advancing = False

    @property
    def has_line(self) -> bool:
        """Whether triggers wait for their turn."""
        return bool(self._pending)

    @property
    def _has_place(self) -> bool:
        free = len(self._active) < self._places and not self.suspended
        return free and self._on_hold is None

    def _drop(self, message: Message, pending: Pending | None, why: str) -> None:
        self.statistics.dropped += 1
        self._note(message, "dropped", why)
        if pending is not None:
            pending.discard()

    def _forget_waiting(self, why: str) -> None:
        while self._pending:
            message, _, pending = self._pending.pop(0)
            self._drop(message, pending, why)

    def abandon(self, run: Run, what: str) -> None:
        """Stop waiting for a run that does not unwind; it may go on, but nobody hears it."""
        self.statistics.abandoned += 1
        log.warning("run_did_not_unwind", route=str(self.route), run=run.id, doing=what)
        if self._ended(run, None, reached_end=False):
            self._handle_soon(run)
        else:
            self._vacate(run)

    def is_news(self, run: Run | None, stage: str, error: Exception) -> bool:
        """Return whether a failure should be told; else it is one that goes on, and is counted.

        An answer is somebody's turn, who waits for it: each one that fails is told.
        """
        if run is not None and self.route.answers:
            return True
        if self.failures is None:
            self.failures = Failures(route=str(self.route))
        return self.failures.is_news(stage, error, run.id if run is not None else 0)

    def works(self, stage: str) -> bool:
        """Record that a stage has worked, and return whether its next failure is news."""
        if self.failures is not None:
            if not self.failures.works(stage):
                return False
            if not self.failures.stages:
                self.failures = None
        return True

    def _all_works(self, failures: Failures) -> None:
        """Record that a run came to its end: all stages that wait have worked."""
        for stage in failures.stages:
            if not self.pipeline.watches(stage):
                self.works(stage)

    def _close_failures(self) -> None:
        failures, self.failures = self.failures, None
        if failures is not None:
            failures.close()

    # --- rules --------------------------------------------------------------------------------

    def interrupt(self, rule: Interrupt, message: Message) -> None:
        """Cut the runs that a rule may cut, for a message that it matches."""
        if self.router.withholds is not None and self._is_withheld(message):
            return
        if not (self._active or self._held or self._pending or rule.suspends):
            self._note(message, "idle", f"{rule.written}: nothing was running")
            return
        live = self._live()
        if rule.condition is not None:
            matters = rule.suspends or live or self._pending
            if matters and not self._allowed(rule, message):
                return
        if rule.suspends:
            self.suspended = True
            self._note(message, "suspended", rule.written)
        if not live and not self._pending:
            self._note(message, "idle", f"{rule.written}: nothing was running")
            return
        if self._on_hold is not None:
            self._note(message, "gated", f"{rule.written}: {ON_HOLD}")
            return
        if self._pending and not (live and all(run._protected for run in live)):
            self._forget_waiting(rule.written)
        spared = True
        for run in live:
            if not run._protected:
                spared = False
                if run.cut(message, rule):
                    self._note(message, "cut", rule.written, run.id)
        if live and spared:
            self._note(message, "gated", f"{rule.written}: what is being said is not interruptible")

    def is_cut_by(self, event_class: type) -> bool:
        """Whether a rule would cut runs for some event of a class, if it were published now."""
        if self._on_hold is None:
            for rule in self.rules:
                if isinstance(rule, Interrupt) and rule.matcher.for_class(event_class) is not None:
                    return True
        return False

    def _live(self) -> list[Run]:
        live = []  # no comprehensions: one is a call in Python 3.11, and this is asked at a cut
        for run in (*self._active, *self._held) if self._held else self._active:
            if not run.is_cut:
                live.append(run)
        return live

    def _allowed(self, rule: Interrupt, message: Message) -> bool:
        assert rule.condition is not None
        try:
            allowed = rule.condition(message)
            if shape_of(allowed) is Shape.AWAITABLE:
                Pending(allowed, 0, "").discard()
                raise TypeError(f"a condition says yes or no, and gave {allowed!r}")
        except BaseException as error:  # noqa: ASYNC103, BLE001 - told; silence is the safer side to err on
            self.router.failed(None, self, str(rule), as_error(error))
            return True  # noqa: ASYNC104 - see as_error()
        if self.failures is not None:
            self.works(rule.written)
        if not allowed:
            self._note(message, "gated", f"{rule.written}: the condition was {allowed!r}")
        return bool(allowed)

    def gate(self, rule: Gate, message: Message) -> None:
        """Hold or release the runs, as a rule says for a message that it matches."""
        if self.router.withholds is not None and self._is_withheld(message):
            return
        if self._on_hold is not None:
            self._note(message, "gated", f"{rule.written}: {ON_HOLD}")
            return
        awakes = rule.opens and self.suspended
        if awakes:
            self.suspended = False
        touched = [run for run in self._active if run.is_paused is rule.opens and not run.is_cut]
        for run in touched:
            if rule.opens:
                run.resume()
            else:
                run.pause()
        word: Verdict = "resumed" if rule.opens else "paused"
        self._note(
            message, word if touched or awakes else "idle", f"{rule.written}: {len(touched)} runs"
        )
        if awakes:
            self._next()

    def hold_all(self) -> None:
        """Hold every run in place, past all rules, and begin no more until ``go_on()``."""
        if self._on_hold is None:
            self._on_hold = [(run, run.is_paused) for run in self._live()]
            for run, _ in self._on_hold:
                run.pause()

    def go_on(self) -> None:
        """Let the runs go on that ``hold_all()`` has held, and begin those that wait."""
        held, self._on_hold = self._on_hold or [], None
        for run, was_paused in held:
            if not was_paused:
                run.resume()
        self._next()

    def set_aside(self, run: Run) -> None:
        """Let a run go on in the background: no rule reaches it, and it holds up nobody."""
        if run in self._active:
            del self._active[run]
            self._aside[run] = None
            self._next()

    def cut_all(self, message: Message | None, reason: str, *, aside: bool = True) -> int:
        """Cut every run that is running or outstanding, whatever protects it.

        The triggers that wait are forgotten.  If the chain has a rule with a handler, that handler
        is told, as of a cut by that rule.

        Args:
            message: What cuts them; ``None`` if no message does.
            reason: Why, for people.
            aside: Whether those in the background are cut too.

        Returns:
            How many were cut.
        """
        self._forget_waiting(reason)
        runs = (*self._live(), *self._aside) if aside else self._live()
        return sum(run.cut(message, reason=reason) for run in runs)

    def close(self, outcome: str) -> None:
        """End every run, uncut, and forget the triggers that wait."""
        self._forget_waiting(f"the router is closing: {outcome}")
        self._close_failures()
        for run in self.runs:
            run.end(outcome)

    def was_cut(self, run: Run, now_s: float) -> None:
        """Take note of a cut; called by the run, in the same step."""
        self.statistics.cut += 1
        router = self.router
        if router.on_cut is not None:
            router.notify(router.on_cut, run)
        if run.outcome is None:
            router.call_at(run, now_s + router.unwind_s, partial(self.abandon, run, "unwinding"))
            return
        run.outcome = "interrupted"
        self._held.pop(run, None)
        if self._is_told_of(run) and run not in self._active:
            self._active[run] = None
            self._handle_soon(run)
        self._leave_if_done()

    def was_held(self, run: Run) -> None:
        """Keep a run that has finished interruptible."""
        if run.outcome is not None and run not in self._active and not run.is_cut:
            self._held[run] = None

    def was_released(self, run: Run) -> None:
        """Forget a run of which nothing is outstanding."""
        self._held.pop(run, None)
        if run.is_settled:
            run.trigger = None
        self._leave_if_done()

    def forget(self) -> None:
        """Begin no more runs: the chain was written further, or its bridge has left."""
        self.removed = True
        self._forget_waiting("the chain was taken away")
        self._close_failures()

    def _leave_if_done(self) -> None:
        if self.removed and not self.runs:
            self.router.retire(self)

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """The last lines of "why?", oldest first."""
        return tuple(
            Decision(at_s, alias_of(cls), message, verdict, f"{why}: run {run}" if run else why)
            for at_s, cls, message, verdict, why, run in self._notes or ()
        )

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that are running, or of which something is outstanding."""
        return (*self._active, *self._held, *self._aside)

    def _note(self, message: Message, verdict: Verdict, why: str, run: int = 0) -> None:
        if self._notes is None:
            self._notes = []
        elif len(self._notes) == DECISIONS_KEPT:
            del self._notes[0]
        self._notes.append((message.at_s, type(message.event), message.id, verdict, why, run))
        router = self.router
        if router.on_decision is not None:
            router.notify(router.on_decision, self, message, verdict, why, run)
