"""Delivers every message to the matching chains, in one synchronous step.

Rules of a publication, in this order:
1. Messages of a cut run go no further: a stale message is dropped and counted.
2. Interrupt rules cut their runs before anything else sees the event.  If a run is cut by a
   message that it published itself, the message is detached from the run and still delivered.
3. Pause and resume rules act.
4. Chains are triggered; their sync stages run here and now.
5. Sinks get the message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import trio

from ._active_chains import ChainKeeper
from ._chain_runtime import RouteRuntime
from ._chain_types import E
from ._deferred_work import DEPTH_LIMIT, DeferredWork
from ._dispatch_plan import MessageObserver, Plan, Plans, hint_at_event, is_event, publishable
from ._errors import NotAnEventError, PublishLoopError, RouteDefinitionError
from ._event_match import Matcher, matcher
from ._listeners import (
    DecisionListener,
    ErrorListener,
    FailureListener,
    InterruptionSource,
    Listeners,
    RunAndRouteListener,
    RunListener,
)
from ._message import Message
from ._message_sinks import SINK_LIMIT, AsyncSinks, FailingReceivers, QueuedSink
from ._pause_gate import PauseGate
from ._route import Route, new_route
from ._rules import Interrupt
from ._run import Run
from ._run_context import CURRENT_RUN
from ._run_outcome import Outcome, RouterStatistics
from ._signatures import needs_function, needs_plain_function
from ._stage_pipeline import Publish
from ._timers import Timers
from ._trigger_handoff import hand_on
from ._user_errors import as_error
from .logs import get_logger

log = get_logger()


class Router(DeferredWork):
    """Dispatches the messages of one conversation to its chains and sinks.

    Open one with ``open_router()``.

    Attributes:
        nursery: Owns the tasks of all runs.
        unwind_s: How long a cut run may take to unwind before its chain stops waiting for it.
        handler_s: How long the handler of an interruption may take.
        listeners: The functions called when something happens; set by ``listen()``.
        withholds: Whether a message is withheld from the chains of a source and their rules; a
            function of both, which must always say the same of a message.  ``None`` withholds
            nothing; set by ``withhold()``.
        gate: Shut while a call is paused, so that nothing begins.
        async_sinks: The async sinks, and the runs whose messages wait for them.
        closing: The outcome of runs that end because the router does; ``None`` while it is open.
        closed: Whether all its tasks have ended, so that nothing is triggered any more.
        timers: What calls functions at set times, until it is closed.
        call_at: Calls a plain function at a time; takes a key, the time in seconds of trio's clock,
            and the function.  A second timer with the same key replaces the first; errors of the
            function are logged.
        forget: Cancels the timer with a key, if there is one.
    """

    __slots__ = (
        "_chains", "_failing", "_messages", "_now_s", "_plans", "_publishers", "_runs", "_stale",
        "_unpublished", "async_sinks", "call_at", "closed", "closing", "forget", "gate",
        "handler_s", "timers", "unwind_s", "withholds",
    )  # fmt: skip

    def __init__(self, nursery: trio.Nursery, *, unwind_s: float, handler_s: float) -> None:
        super().__init__(nursery, Listeners())
        self.unwind_s = unwind_s
        self.handler_s = handler_s
        self.withholds: Callable[[str, Message], bool] | None = None
        self.closing: Outcome | None = None
        self.closed = False
        self.gate = PauseGate()
        self._chains = ChainKeeper()
        self._publishers: dict[str, Publish] = {}
        self._plans = Plans(self._chains, self.reports_later)
        self._failing = FailingReceivers(self.listeners.show)
        self.async_sinks = AsyncSinks(nursery, self.listeners.show)
        self._messages = self._unpublished = self._stale = self._runs = 0
        self._now_s = trio.lowlevel.current_clock().current_time  # two calls fewer for each message
        self.timers = Timers(nursery, self._call_timer)
        self.call_at = self.timers.set  # bound directly: each cut sets a timer
        self.forget = self.timers.cancel

    # --- declaring ----------------------------------------------------------------------------

    def on(self, event: object, *, name: str = "", **options: Any) -> Route[Any]:
        """Start a chain.

        Args:
            event: As in ``bridge.on()``.
            name: The source of the messages that the chain broadcasts.
            **options: As in ``bridge.on()``.
        """
        return new_route(self, name, event, **options)

    def install(self, route: Route, instead_of: Route | None) -> None:
        """Start a chain, in place of the one that it extends."""
        if route.trigger.linked and any(isinstance(rule, Interrupt) for rule in route.rules):
            log.debug("linked_route_with_rules", route=str(route))
        self._chains.install(RouteRuntime(route, self), instead_of)
        self._plans.clear()

    def remove(self, source: str) -> None:
        """Remove the chains of a source: they start no more runs."""
        self._chains.remove(source)
        self._publishers.pop(source, None)
        self._plans.clear()

    def retire(self, chain: object) -> None:
        """Forget a removed chain whose last run has ended."""
        if self._chains.forget(chain):
            self._plans.clear()

    def observe(
        self,
        event: object,
        fn: MessageObserver,
        *,
        before_rules: bool = False,
        may_wait: bool = False,
    ) -> None:
        """Call a plain function with each matching message, after the rules and before any chain.

        Args:
            event: As in ``bridge.on()``.
            fn: A plain function of the message.
            before_rules: Call it before the rules instead.
            may_wait: As in ``add_sink()``.
        """
        needs_plain_function(fn, "observe()")
        if before_rules:
            fn = partial(self._failing.call, "observer_failed", fn)
        meant = matcher(event, "observe()")
        self._plans.add_observer(meant, fn, before_rules=before_rules, may_wait=may_wait)

    def add_sink(
        self,
        fn: Callable[[Message], Any],
        event: object = None,
        *,
        unless: tuple[type, ...] = (),
        limit: int = SINK_LIMIT,
        may_wait: bool = False,
    ) -> QueuedSink | None:
        """Pass each message that is not stale to a function, after all chains.

        Args:
            fn: A plain function, called at once; or an async one, which gets a queue and a task.
                If the queue is full, the run that filled it waits, and nothing else does.
            event: Which messages; ``None`` means all.
            unless: Event classes that it never gets, whatever `event` says.
            limit: How many messages may wait for an async function before runs wait, at least 1.
            may_wait: Whether messages that cut running runs may come after these have had their
                step, if ``report_later()`` allows it; they still come before any later message.

        Returns:
            The queue of an async function, else ``None``.

        Raises:
            RouteDefinitionError: `fn` is not a function, or `limit` is below 1.
        """
        needs_function(fn, "add_sink()")
        if not isinstance(limit, int) or limit is True or limit < 1:
            raise RouteDefinitionError(f"add_sink() limit= is a whole number from 1, not {limit!r}")
        queued = self.async_sinks.start(fn, limit)
        meant = Matcher((object,)) if event is None else matcher(event, "add_sink()")
        if unless:
            meant = replace(meant, unless=unless)
        self._plans.add_sink(meant, queued or fn, may_wait=may_wait)
        return queued

    @property
    def routes(self) -> tuple[RouteRuntime, ...]:
        """The chains at work, in the order in which they were started."""
        return self._chains.at_work

    def runtime(self, route: Route) -> RouteRuntime:
        """Return a chain at work: its runs, statistics and decisions.

        Raises:
            KeyError: The chain was extended since, and is no longer at work.
        """
        return self._chains.runtime(route)

    @property
    def statistics(self) -> RouterStatistics:
        """What it has done so far."""
        return RouterStatistics(self._messages - self._unpublished, self._stale)

    def report_later(self, event_class: type | None) -> None:
        """Report cuts by events of this class, and of no other, only after the runs' next step."""
        before, self._reported_later = self._reported_later, event_class
        for cls in self._plans.keys() & {before, event_class}:
            self._plans[cls].report_cuts(later=self.reports_later(cls))

    def withhold(self, withholds: Callable[[str, Message], bool] | None) -> None:
        """Withhold some messages from some chains from now on; ``None`` withholds nothing."""
        self.withholds = withholds

    # --- publishing ---------------------------------------------------------------------------

    def publish(self, event: E, source: str = "", run: Run | None = None) -> Message[E]:
        """Dispatch an event to every matching chain and sink, now.

        It never waits, and never raises for an error of a chain, sink or listener.  Once the router
        is closed, it triggers nothing.

        Args:
            event: An instance of any event class.
            source: Who publishes it.
            run: The run it belongs to; ``None`` takes the current run, if there is one.

        Returns:
            The message that carried it.

        Raises:
            PublishLoopError: Sync stages trigger one another without end; raised only inside a
                stage, which then fails.
        """
        self._messages += 1
        message = Message(event, source, self._messages, self._now_s(), run or CURRENT_RUN.get())
        if self.waits or self._depth or message.run is not None:
            self._dispatch(message)
            return message
        plan = self._plans[type(event)]
        if plan.rest_after_cut is None:
            self._dispatch(message)
            return message
        # The usual barge-in, without a call of `_dispatch()`: no cut has happened for seconds, so
        # each function on the way to this one has to be brought into the processor's cache.
        self._depth = 1
        try:
            for apply in plan.rules:
                apply(message)
        finally:
            self._depth = 0
        if self.unreported and not (self._is_urgent or self._is_closed):
            self._rest = message, plan.rest_after_cut
            self.waits = True
        else:
            self._dispatch(message, rules=False)
        return message

    def publish_detached(self, event: Any, source: str = "") -> Message:
        """Publish an event that belongs to no run, wherever this is called."""
        self._messages += 1
        message = Message(event, source, self._messages, self._now_s(), None)
        self._dispatch(message)
        return message

    def publisher(self, source: str) -> Publish:
        """Return what publishes the values that chains of a source produce, with their runs.

        All chains of the source share it, because one for each would be a fifth of its memory.  It
        takes an event, or a message whose event is published again, and raises TypeError for
        anything else.
        """
        if source not in self._publishers:
            self._publishers[source] = partial(self._broadcast, source)
        return self._publishers[source]

    def _broadcast(self, source: str, value: Any, run: Run | None) -> None:
        event = value
        if type(event) not in publishable:  # usually known to be an event class
            event = value.event if type(value) is Message else value
            if type(event) not in publishable and not is_event(event):
                raise NotAnEventError(event, hint_at_event(event))
        self._messages += 1
        self._dispatch(Message(event, source, self._messages, self._now_s(), run))

    def _dispatch(self, message: Message, *, rules: bool = True) -> None:
        if self.waits:
            self.catch_up()
        run = message.run
        if run is not None and (run.is_cut or run.parent is not None) and run.is_stale:
            self._unpublished += 1
            self._stale += 1
            return
        plan = self._plans[type(message.event)]
        depth = self._depth
        if depth >= self._depth_limit:
            self._refuse_deeper(message)
        self._depth = depth + 1
        try:
            if plan.rules:
                for apply in plan.rules if rules else ():
                    apply(message)
                if self.unreported:
                    rest = plan.rest_after_cut
                    if rest is None or depth or self._is_urgent or self._is_closed:
                        self._is_due = True
                        if self._is_urgent or not plan.reports_later:
                            self.report_cuts()
                    else:
                        self._rest, self.waits = (message, rest), True
                if run is not None and run.is_stale:
                    message.leave_run()  # this very message cut its run; deliver it anyway
                    run = None
                if self.waits:  # for the next step of the runs that were cut
                    return
            for observer in plan.first:
                try:
                    observer(message)
                except BaseException as error:  # noqa: ASYNC103, BLE001 - told, and the others get the message
                    self._failing.failed("observer_failed", observer, message, as_error(error))
                else:
                    if self._failing.known:
                        self._failing.works("observer_failed", observer)
            for trigger in plan.triggers:
                trigger(message)
            if run is not None and (run.is_cut or run.parent is not None) and run.is_stale:
                self._stale += bool(plan.sinks)
                return
            for sink in plan.sinks:  # inline: this is the last stop of most messages
                try:
                    sink(message)
                except BaseException as error:  # noqa: ASYNC103, BLE001 - told, and the others get the message
                    self._failing.failed("sink_failed", sink, message, as_error(error))
                else:
                    if self._failing.known:
                        self._failing.works("sink_failed", sink)
        finally:
            self._depth = depth
            if not depth and self._is_due:
                self._publication_over()

    def _hand_out(self, message: Message, rest: Plan) -> None:
        if message.is_stale:
            self._stale += bool(rest.sinks)
            return
        for observer in rest.first:
            self._failing.call("observer_failed", observer, message)
        for sink in rest.sinks:
            self._failing.call("sink_failed", sink, message)

    def _refuse_deeper(self, message: Message) -> NoReturn:
        # Refuse everything else that is published within this publication; otherwise two chains
        # that trigger each other twice would publish 2 ** 32 times.
        self._depth_limit = 0
        self._is_due = True
        raise PublishLoopError(message.alias, DEPTH_LIMIT)

    def _call_timer(self, fn: Callable[[], None]) -> None:
        self.catch_up()
        self.listeners.notify(fn)

    # --- listeners ----------------------------------------------------------------------------

    def listen(
        self,
        *,
        run_started: RunAndRouteListener | None = None,
        run_ended: RunListener | None = None,
        run_cut: RunListener | None = None,
        background_requested: RunListener | None = None,
        describe_interruption: InterruptionSource | None = None,
        failed: FailureListener | None = None,
        caught: ErrorListener | None = None,
    ) -> None:
        """Set the plain functions that are called when something happens, in the same step.

        There is one listener for each occurrence, the one given last; ``None`` leaves it as it is.
        Errors of a listener are logged and go no further.

        Args:
            run_started: Gets each run that starts, and its chain.
            run_ended: Gets each run whose stages have ended.
            run_cut: Gets each run that is cut; see ``report_later()``.
            background_requested: Gets a run whose token got a request to move to the background.
            describe_interruption: An async function that completes the ``Interruption`` for a
                handler, given the run and what the engine knows about its cut.
            failed: Gets the failed run or ``None``, the chain, the stage and the error.
            caught: Gets each exception caught here: from stages, handlers, conditions, sinks,
                observers and listeners.
        """
        self.listeners.set(
            run_started=run_started,
            run_ended=run_ended,
            run_cut=run_cut,
            background_requested=background_requested,
            describe_interruption=describe_interruption,
            failed=failed,
            caught=caught,
        )
        self._plans.clear()  # a plan says whether somebody listens for cuts

    def explain_to(self, listener: DecisionListener | None) -> None:
        """Call a plain function whenever a chain does or does not act on a message.

        Args:
            listener: Gets the chain, the message, the verdict, the reason and the number of the
                run (0 for none).  It is called in the same step; for a cut, in the next step or
                before anything else is published.  ``None`` removes it.
        """
        self.listeners.explain_to(listener)

    def notify(self, listener: Callable[..., Any] | None, *args: Any) -> None:
        """Call a function, if there is one; its errors are logged and go no further."""
        self.listeners.notify(listener, *args)

    def caught(self, error: Exception) -> None:
        """Call the listener for caught exceptions with one that goes no further."""
        self.listeners.show(error)

    # --- runs ---------------------------------------------------------------------------------

    def next_run_id(self) -> int:
        """Return the number of a new run."""
        self._runs += 1
        return self._runs

    def report(self, run: Run | None, route: Route, stage: str, error: Exception) -> None:
        """Log a failure of a chain or of one of its runs, and call the listener for failures."""
        listeners = self.listeners
        listeners.log_failure(route, stage, error)
        if listeners.is_reporting:
            return  # the listener for failures caused this one: only log it
        report = partial(listeners.report_failure, run, route, stage, error)
        if self._depth_limit:
            report()
        else:
            self.call_after(report)

    def pause_all(self, source: str) -> None:
        """Pause every run of a source in place, also in the background, and start no more.

        Triggers that arrive meanwhile are queued.  Chains with only sync stages still work.
        """
        self._chains.pause(source)

    def resume_all(self, source: str) -> None:
        """Resume the runs that ``pause_all()`` paused, and start queued ones."""
        self._chains.resume(source)

    def waiting(self, source: str) -> list[Message]:
        """Return the queued triggers of a bridge's chains, in order."""
        return [message for runtime in self._chains.of(source) for message in runtime.queued]

    def hand_on(
        self, source: str, target: str, meant: Callable[[Message], bool], reason: str,
        unfinished: Iterable[Message] = (),
    ) -> None:  # fmt: skip
        """Move the queued triggers of one bridge's streaming chains to another bridge's chains."""
        hand_on(self._chains.all, source, target, meant, reason, unfinished)

    def cut_all(
        self,
        reason: str,
        source: str | None = None,
        cause: Message | None = None,
        *,
        background: bool = True,
    ) -> int:
        """Cut every run, even protected ones, and drop all queued triggers.

        Args:
            reason: Why, as text for people.
            source: Cut only the runs of this bridge; ``None`` means all.
            cause: The message that cuts them; ``None`` if no message does.
            background: Whether to cut runs in the background too.

        Returns:
            How many runs were cut.
        """
        chains = self._chains.all if source is None else self._chains.of(source)
        return sum(runtime.cut_all(cause, reason, background=background) for runtime in chains)

    def close(self, outcome: Outcome) -> None:
        """End every run now, as ``disconnected`` or by ``shutdown``, and start no more."""
        self._finish_deferred()
        self.closing = self.closing or outcome
        self._failing.close()
        for runtime in self._chains.all:
            runtime.close(self.closing)

    def seal(self) -> None:
        """Trigger nothing any more: all its tasks have ended."""
        self.closed = True
        self._plans.close()
