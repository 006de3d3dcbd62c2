"""A chain at work in one router: when its runs start, how they end, and what waits."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import trio

from ._chain_failures import ChainFailures
from ._chain_runs import ChainRuns
from ._decision_log import DecisionLog
from ._errors import PublishLoopError, ScopeLeakError
from ._interruption_handler import call_handler, has_handler
from ._message import Message
from ._route import Route
from ._router_protocol import ChainRouter
from ._rule_actions import action_of
from ._rules import Interrupt
from ._run import Run
from ._run_context import CURRENT_RUN
from ._run_outcome import Decision, RouteStatistics
from ._run_stages import NOT_YET, carry_out, causes
from ._run_task import RunTask
from ._stage_pipeline import Pending, Pipeline, StageError, StageResult
from ._trigger_queue import TriggerQueue
from ._user_errors import contain, is_stop
from .logs import get_logger

log = get_logger()

REENTRY_LIMIT = 32
"""How often a chain of sync stages may trigger itself before it is stopped."""

WITHHELD = "it answers a question of this agent"


class RouteRuntime:
    """A chain at work in a router: it decides when runs start, and executes them.

    Attributes:
        route: The chain as written.
        source: The bridge that declared it.
        pipeline: Its stages, ready to run.
        actions: Apply its rules to its runs.
        cuts: Is notified of each cut: the router.
        failures: Its persisting failures.
        gate: The router's.
        removed: Whether it was removed, and starts no more runs.
        notified: The rule whose handler runs after a cut that no rule made; ``None`` if no rule
            has a handler.
    """

    __slots__ = (
        "_advancing", "_decisions", "_listeners", "_makes_runs", "_push", "_queue", "_router",
        "_runs", "_statistics", "actions", "cuts", "failures", "gate", "notified", "pipeline",
        "removed", "route", "source",
    )  # fmt: skip

    def __init__(self, route: Route, router: ChainRouter) -> None:
        trigger = route.trigger
        self.route = route
        self._router = self.cuts = router
        self._listeners = router.listeners
        self.source = route.source
        self.gate = router.gate
        self.failures = ChainFailures(route)
        publish = router.publisher(route.source)
        self.pipeline = Pipeline(route, publish, self.failures.works)
        self._push = self.pipeline.lead.push
        self._statistics = RouteStatistics()
        self.removed = False
        self._decisions = DecisionLog(route, router.listeners)
        self._runs = ChainRuns(trigger.limit if trigger.overlap == "concurrent" else 1)
        limit = trigger.limit if trigger.overlap == "queue" else math.inf
        self._queue = TriggerQueue(limit, self._statistics, self._decisions)
        parts = self, router, self._runs, self._queue, self._decisions
        self.actions = tuple(action_of(rule, *parts) for rule in route.rules)
        self._advancing = False
        cuts = (rule for rule in route.rules if isinstance(rule, Interrupt))
        self.notified: Interrupt | None = next((r for r in cuts if r.handler is not None), None)
        self._makes_runs = bool(route.rules) or bool(self.pipeline.head) or trigger.linked

    @property
    def written(self) -> str:
        """The chain as text; made when asked for, so that no call keeps a text for each chain."""
        return str(self.route)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that are running, or whose output has not all arrived."""
        return self._runs.all

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """Its last decisions and their reasons, oldest first."""
        self._router.report_cuts()
        return self._decisions.decisions

    @property
    def statistics(self) -> RouteStatistics:
        """What it has done so far."""
        self._router.report_cuts()
        return self._statistics

    @property
    def queued(self) -> list[Message]:
        """The queued triggers, oldest first."""
        return [message for message, _, _ in self._queue.waiting]

    @property
    def streams(self) -> bool:
        """Whether it streams something and broadcasts it."""
        return self.route.streams

    @property
    def scope(self) -> trio.CancelScope:
        """The scope whose cancellation ends all runs of the router."""
        return self._router.nursery.cancel_scope

    # --- triggers -----------------------------------------------------------------------------

    def trigger(self, message: Message) -> None:
        """Start a run for a message, or follow ``overlap=`` if none may start now."""
        if self.removed or (self._router.withholds is not None and self.is_withheld(message)):
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
            # A plain function returned an awaitable: from now on this chain has runs to order.
            self._makes_runs = True
            self._start(message, NOT_YET, result)

    def is_withheld(self, message: Message) -> bool:
        """Return whether a message is withheld from this chain, and record the decision if so."""
        assert self._router.withholds is not None
        if not self._router.withholds(self.source, message):
            return False
        self._decisions.add(message, "gated", WITHHELD)
        return True

    def _trigger_run(self, message: Message) -> None:
        runs, overlap = self._runs, self.route.trigger.overlap
        if runs.suspended:
            self._decisions.add(message, "gated", "suspended")
            self._statistics.dropped += 1
            return
        if runs.all_paused is not None:
            self._enqueue(message)
            return
        if overlap == "restart":
            self._queue.drop_all("overlap='restart'")
            for run in runs.live():
                if not run.is_protected:
                    run.cut(message, reason="overlap='restart'")
        if not runs.has_place or self._queue.waiting:
            if overlap == "drop":
                self._queue.drop(message, None, "overlap='drop': a run is active")
            else:
                self._enqueue(message)
        elif self.pipeline.head:
            self._lead_in(message)
        else:
            self._run_inline(message)

    def _enqueue(self, message: Message) -> None:
        """Queue a trigger, together with what the sync lead stages make of it."""
        if not self._queue.has_room(message, self.route):
            return
        self._decisions.add(message, "queued", f"{len(self._runs.active)} active")
        if self.pipeline.head and len(self.pipeline.lead):
            self._lead_in(message, now=False)
        else:
            self._queue.add(message, NOT_YET, None)

    def drop_queued(self, meant: Callable[[Message], bool], why: str) -> list[Message]:
        """Drop some of the queued triggers, and return them in order.

        Args:
            meant: Which triggers to drop.
            why: The reason, as text for people.
        """
        return self._queue.drop_where(meant, why)

    def has_run_or_trigger(self, message: Message) -> bool:
        """Return whether a message is queued here, or started a run that is not over."""
        begun = (run.trigger for run in self.runs if not run.is_cut)
        return message in begun or self._queue.has(message)

    def _lead_in(self, message: Message, *, now: bool = True) -> None:
        """Run the sync lead stages, in this scheduler step."""
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
            self._queue.add(message, value, pending)

    def _failed_early(self, failure: StageError) -> None:
        self._statistics.failed += 1
        self.failed(None, failure.stage, failure.error)

    def _start(self, message: Message, value: Any, pending: Pending | None) -> None:
        if self._router.closing is not None:
            self._queue.drop(message, pending, f"the router is closing: {self._router.closing}")
            return
        run = self._new_run(message)
        self._start_task(run, value, pending)

    def _start_task(self, run: Run, value: Any, pending: Pending | None) -> None:
        self._router.nursery.start_soon(self._task, run, value, pending, name=self._task_name)

    @property
    def _task_name(self) -> str:
        return f"run of {self.source}: {self.route.trigger.written}"

    def _new_run(self, message: Message) -> Run:
        run = Run(self, self._router.next_run_id(), message, trio.current_time())
        self._runs.add_active(run)
        self._statistics.started += 1
        self._decisions.add(message, "matched", f"run {run.id}")
        if self.route.trigger.linked:
            run.link_to_ancestors()
        self._listeners.notify(self._listeners.run_started, run, self.route)
        return run

    def _run_inline(self, message: Message) -> None:
        """Execute a run that never waits: without a task or a scheduler step."""
        run = self._new_run(message)
        token = CURRENT_RUN.set(run)
        error: Exception | None = None
        pending: Pending | StageResult | None = None
        try:
            pending = self.pipeline.lead.push(message, run)
        except StageError as failure:
            error = failure
        finally:
            CURRENT_RUN.reset(token)
        if type(pending) is Pending:
            if self._router.closing is None:
                self._start_task(run, NOT_YET, pending)
                return
            pending.discard()
        self._ended(run, error, reached_end=type(pending) is not Pending)
        self._handle_soon(run)

    # --- a run in a task ----------------------------------------------------------------------

    async def _task(self, run: Run, value: Any, pending: Pending | None) -> None:
        CURRENT_RUN.set(run)
        error: Exception | None = None
        reached_end = False
        try:
            with run.scope:
                if not (run.is_cut or run.is_stopping):
                    work, items = carry_out(self.pipeline, run, value, pending)
                    if self.pipeline.needs_nursery:
                        await work  # other tasks clean up as well, so this one alone says nothing
                    else:
                        waits_again = self._router.call_in_next_step
                        await run.work_by(RunTask(work, items, waits_again))
                elif pending is not None:
                    pending.discard()
                reached_end = True
        except BaseException as exc:  # noqa: ASYNC103, BLE001 - the edge of the run: see _ended()
            error, rest = contain(exc)
            if isinstance(error, ScopeLeakError) and (run.is_cut or run.scope.cancel_called):
                error = None  # only a consequence of ending the run
            if rest is not None:  # everything ends, not only this run
                self._cast_off(run, error)
                raise rest from None  # noqa: ASYNC104 - Cancelled is in it
        if self._ended(run, error, reached_end=reached_end):
            await self._handle(run)

    def _cast_off(self, run: Run, error: Exception | None) -> None:
        if self._ended(run, error, reached_end=False):
            self._handle_soon(run)

    # --- how runs end -------------------------------------------------------------------------

    def _ended(self, run: Run, error: Exception | None, *, reached_end: bool) -> bool:
        """Give a run its outcome; False if it has one already, because it was abandoned."""
        run.note_stages_over()
        if self._router.waits:
            self._router.catch_up()
        first = run.outcome is None
        if first:
            if run.is_cut:
                run.finish("interrupted")
            elif error is not None:
                run.finish("failed")
                self._statistics.failed += 1
            elif reached_end or run.is_stopping:
                run.finish("completed")
                if self.failures.known is not None:
                    self.failures.all_work(self.pipeline.watches)
            else:
                run.finish(self._router.closing or "shutdown")
        for stage, cause in causes(error, self.pipeline.head_name):
            if not (run.is_cut and is_stop(cause)):
                self.failed(run, stage, cause)
        if first:
            self._listeners.notify(self._listeners.run_ended, run)
            run.let_go()
        return first

    def _handle_soon(self, run: Run) -> None:
        """Call the handler, if there is one, in a task of its own; else free the run's place."""
        if has_handler(run) and not self._router.closed:
            self._router.nursery.start_soon(self._handle, run, name=f"handler of {run.source}")
        else:
            self._vacate(run)

    async def _handle(self, run: Run) -> None:
        """Call the handler of a cut run, in bounded time; then free the run's place."""
        if has_handler(run):
            await call_handler(run, self._router, failed=self.failed, abandon=self.abandon)
        self._vacate(run)

    def _vacate(self, run: Run) -> None:
        self._router.forget(run)
        if self._runs.vacate(run):
            self.start_waiting()
        self._leave_if_done()

    def start_waiting(self) -> None:
        """Start runs for queued triggers while there are places."""
        if self._advancing:
            return
        self._advancing = True
        queue = self._queue
        turns = len(queue.waiting) + REENTRY_LIMIT
        try:
            while queue.waiting and self._runs.has_place and not self._router.closing:
                message, value, pending = queue.next()
                turns -= 1
                if message.is_stale:
                    queue.drop(message, pending, "what caused it was cut")
                elif not turns:
                    loop = PublishLoopError(message.alias, REENTRY_LIMIT)
                    queue.drop_all("the chain triggers itself")
                    self.failed(None, self.route.trigger.written, loop)
                elif self.pipeline.head or pending is not None:
                    self._start(message, value, pending)
                else:
                    self._run_inline(message)
        finally:
            self._advancing = False

    def abandon(self, run: Run, what: str) -> None:
        """Stop waiting for a run that does not unwind; its further output is dropped."""
        self._statistics.abandoned += 1
        log.warning("run_did_not_unwind", route=self.written, run=run.id, doing=what)
        if self._ended(run, None, reached_end=False):
            self._handle_soon(run)
        else:
            self._vacate(run)

    # --- called by runs and the router --------------------------------------------------------

    @property
    def has_queue(self) -> bool:
        """Whether triggers are queued."""
        return bool(self._queue.waiting)

    def is_cut_by(self, event_class: type) -> bool:
        """Whether a rule would cut runs for some event of this class, published now."""
        if self._runs.all_paused is None:
            for rule in self.route.rules:
                if isinstance(rule, Interrupt) and rule.matcher.for_class(event_class) is not None:
                    return True
        return False

    def rule_with_handler_for(self, cause: Message | None) -> Interrupt | None:
        """Return the rule whose handler runs after a cut that no rule made; ``None`` for none.

        Args:
            cause: The message that cuts; ``None`` if no message does.
        """
        if self.notified is None or cause is None:
            return self.notified
        cuts = (rule for rule in self.route.rules if isinstance(rule, Interrupt))
        return next((rule for rule in cuts if rule.matches(cause)), self.notified)

    def pause_all(self) -> None:
        """Pause every run in place, ignoring rules, and start no more until ``resume_all()``."""
        self._runs.pause_all()

    def resume_all(self) -> None:
        """Resume the runs that ``pause_all()`` paused, and start queued ones."""
        self._runs.resume_all()
        self.start_waiting()

    def ask_for_background(self, run: Run) -> None:
        """Ask the listener to move a run to the background."""
        self._listeners.notify(self._listeners.background_requested, run)

    def move_to_background(self, run: Run) -> None:
        """Move a run to the background: rules no longer affect it, and its place is free."""
        if self._runs.move_to_background(run):
            self.start_waiting()

    def cut_all(self, message: Message | None, reason: str, *, background: bool = True) -> int:
        """Cut every run, even protected ones, and drop queued triggers; see the router's.

        Afterwards the handler of the chain's first rule that has one runs, as if that rule had cut.
        """
        self._queue.drop_all(reason)
        runs = (*self._runs.live(), *self._runs.background) if background else self._runs.live()
        return sum(run.cut(message, reason=reason) for run in runs)

    def close(self, outcome: str) -> None:
        """End every run without a cut, and drop queued triggers."""
        self._queue.drop_all(f"the router is closing: {outcome}")
        self.failures.close()
        for run in self.runs:
            run.end(outcome)

    def _drop_delivered(self, run: Run) -> None:
        """Forget a run that was cut when its stages had ended, once its handler was called."""
        run.finish("interrupted")
        self._runs.forget_delivered(run)
        if has_handler(run) and run not in self._runs.active:
            self._runs.add_active(run)
            self._handle_soon(run)
        self._leave_if_done()

    def note_cut(self, run: Run) -> None:
        """Count a cut, and record it if a rule made it."""
        self._statistics.cut += 1
        assert run.cut_by is not None
        cause, rule, why, was_running, _ = run.cut_by
        if rule is not None and cause is not None:
            self._decisions.add(cause, "cut", why, run.id)
        if not was_running:
            self._drop_delivered(run)

    def watch_unwinding(self, run: Run) -> None:
        """Wait no longer for a run that was cut than it may take to unwind."""
        if run.outcome is None and run.cut_at_s is not None and not run.stages_are_over:
            until_s = run.cut_at_s + self._router.unwind_s
            self._router.call_at(run, until_s, partial(self.abandon, run, "unwinding"))

    def was_kept(self, run: Run) -> None:
        """Keep a run that has finished interruptible."""
        self._runs.keep_delivered(run)

    def was_released(self, run: Run) -> None:
        """Forget a run whose output has all arrived."""
        self._runs.forget_delivered(run)
        run.let_go()
        self._leave_if_done()

    def forget(self) -> None:
        """Start no more runs: the chain was extended, or its bridge has left."""
        self.removed = True
        self._queue.drop_all("the chain was taken away")
        self.failures.close()

    def _leave_if_done(self) -> None:
        if self.removed and not self.runs:
            self._router.retire(self)

    def failed(self, run: Run | None, stage: str, error: Exception) -> None:
        """Report a failure of this chain; the other chains continue.

        A failure that repeats with each message is reported once, until the stage works again.
        """
        self._listeners.show(error)
        if self.failures.is_new(run, stage, error):
            self._router.report(run, self.route, stage, error)
