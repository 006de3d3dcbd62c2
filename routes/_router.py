"""Hands every message to the chains that are meant, in one synchronous step.

Rules of a publication, in this order:
1. Nothing of a cut run gets further: a stale message is dropped and counted.
2. Interrupt rules cut their runs, before anything else hears of the event.  A run that is cut by
   what it published itself is no longer the run of that message, which goes on all the same.
3. Pause and resume rules hold and release.
4. Chains are triggered; their sync stages run here and now.
5. Sinks get the message.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import structlog
import trio

from ._alarms import Alarms
from ._dispatch_handoff import hand_on
from ._dispatch_plan import (
    NOTHING,
    Observer,
    Plan,
    hint_at_event,
    is_event,
    plan_of,
    publishable,
)
from ._errors import NotAnEventError, PublishLoopError, RouteDefinitionError
from ._match import Matcher, matcher
from ._message import Message
from ._outcome import Interruption, Outcome, RouterStatistics, Verdict
from ._route import Route, new_route
from ._rules import Interrupt
from ._run import Run, _current
from ._runtime import RouteRuntime
from ._signatures import name_of, needs_function, needs_plain_function
from ._sinks import SINK_LIMIT, FailingTakers, QueuedSink, queued_sink
from ._types import E
from ._user_errors import as_error, text_of

log = structlog.get_logger()

DEPTH_LIMIT = 32
"""How deep sync routes may trigger one another within one publication."""


class Router:
    """Holds the chains of one conversation and hands them its messages.

    Open one with ``open_router()``.

    Attributes:
        nursery: Owns the tasks of all runs.
        unwind_s: How long a cut run may take to unwind before it holds up nobody.
        handler_s: How long the handler of an interruption may take.
        on_run_start: Called with each run that begins; ``None`` calls nothing.
        on_run_end: Called with each run whose stages have ended.
        on_cut: Called with each run that is cut, in the same step.
        told_of: Returns what a handler is told of a run, of what is known of its cut here.
        on_move: Called with a run whose token was asked to have it go on in the background.
        on_failure: Called with run or ``None``, chain, stage and error of whatever failed.
        on_error: Called with each exception that is caught here, in the step in which it is caught:
            of stages, handlers, conditions, sinks, observers and listeners.
        on_decision: Called with chain, message, verdict, reason and number of the run (0 for none)
            whenever a chain does or does not act on a message, in the same step.
        withholds: Tells of a source and a message that its chains neither hear of it nor are cut,
            held or released by it; must say the same of a message each time.  ``None`` withholds
            nothing; ``withhold()`` sets it.
        closing: The outcome of runs that end because the router does; ``None`` while it is open.
        closed: Whether nothing is triggered any more, as all its tasks have ended.
    """

    __slots__ = (
        "_after", "_alarms", "_depth", "_depth_limit", "_failing", "_first", "_messages",
        "_plans", "_retired", "_routes", "_runs", "_sinks", "_stale", "_telling", "_unpublished",
        "closed", "closing", "handler_s", "nursery", "on_cut", "on_decision", "on_error",
        "on_failure", "on_move", "on_run_end", "on_run_start", "told_of", "unwind_s", "withholds",
    )  # fmt: skip

    def __init__(self, nursery: trio.Nursery, *, unwind_s: float, handler_s: float) -> None:
        self.nursery = nursery
        self.unwind_s = unwind_s
        self.handler_s = handler_s
        self.on_run_start: Callable[[Run], None] | None = None
        self.on_run_end: Callable[[Run], None] | None = None
        self.on_cut: Callable[[Run], None] | None = None
        self.on_move: Callable[[Run], None] | None = None
        self.told_of: Callable[[Run, Interruption], Awaitable[Interruption]] | None = None
        self.on_failure: Callable[[Run | None, Route, str, Exception], None] | None = None
        self.on_error: Callable[[Exception], None] | None = None
        self.on_decision: Callable[[RouteRuntime, Message, Verdict, str, int], None] | None = None
        self.withholds: Callable[[str, Message], bool] | None = None
        self.closing: Outcome | None = None
        self.closed = False
        self._retired: dict[RouteRuntime, None] = {}
        self._routes: dict[Route, RouteRuntime] = {}
        self._first: list[tuple[Matcher, Observer]] = []
        self._sinks: list[tuple[Matcher, Observer]] = []
        self._plans: dict[type, Plan] = {}
        self._failing = FailingTakers(self.caught)
        self._messages = 0
        self._unpublished = self._stale = 0
        self._runs = 0
        self._depth = 0
        self._depth_limit = DEPTH_LIMIT
        self._telling = False
        self._after: list[Callable[[], None]] = []
        self._alarms = Alarms(nursery, self.notify)

    # --- declaring ----------------------------------------------------------------------------

    def on(self, event: object, *, name: str = "", **options: Any) -> Route[Any]:
        """Begin a chain; what it broadcasts carries `name` as its source.

        Args:
            event: As in ``bridge.on()``.
            name: The source of what the chain broadcasts.
            **options: As in ``bridge.on()``.
        """
        return new_route(self, name, event, **options)

    def install(self, route: Route, instead_of: Route | None) -> None:
        """Make a chain run, in the place of the one it was written from."""
        if route.trigger.linked and any(isinstance(rule, Interrupt) for rule in route.rules):
            log.debug("linked_route_with_rules", route=str(route))
        runtime = RouteRuntime(route, self)
        if instead_of in self._routes:
            routes = [
                (route, runtime) if old is instead_of else (old, kept)
                for old, kept in self._routes.items()
            ]
            replaced = self._routes[instead_of]
            self._routes = dict(routes)
            self._take_away(replaced)
        else:
            self._routes[route] = runtime
        self._plans.clear()

    def remove(self, source: str) -> None:
        """Take away the chains of a source: they begin no more runs."""
        for route in [route for route in self._routes if route.source == source]:
            self._take_away(self._routes.pop(route))
        self._plans.clear()

    def _take_away(self, runtime: RouteRuntime) -> None:
        runtime.forget()
        if runtime.runs:
            self._retired[runtime] = None  # its rules hold until its last run has ended

    def retire(self, runtime: RouteRuntime) -> None:
        """Forget a chain that was taken away and has no more runs."""
        if runtime in self._retired:
            del self._retired[runtime]
            self._plans.clear()

    def observe(self, event: object, fn: Observer) -> None:
        """Call a plain function with each message, after the rules and before any chain.

        Args:
            event: As in ``bridge.on()``.
            fn: A plain function of the message.
        """
        needs_plain_function(fn, "observe()")
        self._first.append((matcher(event, "observe()"), fn))
        self._plans.clear()

    def add_sink(
        self,
        fn: Callable[[Message], Any],
        event: object = None,
        *,
        unless: tuple[type, ...] = (),
        limit: int = SINK_LIMIT,
    ) -> QueuedSink | None:
        """Hand each message that is not stale to a function, after all chains.

        Args:
            fn: A plain function, called at once; or an async one, which gets a queue and a task:
                a run whose messages fill the queue waits, and nobody else does.
            event: Which messages; ``None`` means all.
            unless: Event classes of which it gets none, whatever `event` says.
            limit: How many messages may wait for an async function before runs wait, from 1.

        Returns:
            The queue of an async function, else ``None``.

        Raises:
            RouteDefinitionError: No function, or an impossible limit.
        """
        needs_function(fn, "add_sink()")
        if not isinstance(limit, int) or limit is True or limit < 1:
            raise RouteDefinitionError(f"add_sink() limit= is a whole number from 1, not {limit!r}")
        queued = queued_sink(fn, limit, self.caught, self.nursery)
        meant = Matcher((object,)) if event is None else matcher(event, "add_sink()")
        if unless:
            meant = replace(meant, unless=unless)
        self._sinks.append((meant, queued or fn))
        self._plans.clear()
        return queued

    @property
    def routes(self) -> tuple[RouteRuntime, ...]:
        """The chains at work, in the order in which they were begun."""
        return tuple(self._routes.values())

    def runtime(self, route: Route) -> RouteRuntime:
        """Return a chain at work: its runs, statistics and decisions.

        Raises:
            KeyError: The chain was written further since, and is no longer at work.
        """
        return self._routes[route]

    @property
    def statistics(self) -> RouterStatistics:
        """What it has done so far."""
        return RouterStatistics(self._messages - self._unpublished, self._stale)

    def withhold(self, withholds: Callable[[str, Message], bool] | None) -> None:
        """Keep some messages from some chains from now on; ``None`` keeps nothing from any."""
        self.withholds = withholds

    # --- publishing ---------------------------------------------------------------------------

    def publish(self, event: E, source: str = "", run: Run | None = None) -> Message[E]:
        """Hand an event to every chain and sink that is meant, now.

        Never waits, and never raises for a fault of a chain, sink or listener.  After the router is
        closed nothing is triggered.

        Args:
            event: An instance of any event class.
            source: Who publishes it.
            run: The run it belongs to; by default the one that this code works for.

        Returns:
            The message that carried it.

        Raises:
            PublishLoopError: Sync stages published to one another without end; only within a stage,
                which fails by it.
        """
        self._messages += 1
        message = Message(event, source, self._messages, trio.current_time(), run or _current.get())
        self._dispatch(message)
        return message

    def publish_detached(self, event: Any, source: str = "") -> Message:
        """Publish an event that belongs to no run, wherever it is published from."""
        self._messages += 1
        message = Message(event, source, self._messages, trio.current_time(), None)
        self._dispatch(message)
        return message

    def broadcast(self, source: str, value: Any, run: Run | None) -> None:
        """Publish what a chain gave.

        Args:
            source: The bridge of the chain.
            value: An event, or a message whose event is published anew.
            run: The run that gave it.

        Raises:
            TypeError: It is no event.
        """
        event = value
        if type(event) not in publishable:  # the usual case is known to be one
            event = value.event if type(value) is Message else value
            if type(event) not in publishable and not is_event(event):
                raise NotAnEventError(event, hint_at_event(event))
        self._messages += 1
        self._dispatch(Message(event, source, self._messages, trio.current_time(), run))

    def _dispatch(self, message: Message) -> None:
        run = message.run
        if run is not None and (run.is_cut or run.parent is not None) and run.is_stale:
            self._unpublished += 1
            self._stale += 1
            return
        cls = type(message.event)
        try:
            plan = self._plans[cls]
        except KeyError:
            plan = NOTHING
            if not self.closed:
                plan = plan_of(cls, self._all, self._first, self._sinks, self.failed)
                self._plans[cls] = plan
        depth = self._depth
        if depth >= self._depth_limit:
            self._refuse_deeper(message)
        self._depth = depth + 1
        try:
            if plan.rules:
                for apply in plan.rules:
                    apply(message)
                if run is not None and (run.is_cut or run.parent is not None) and run.is_stale:
                    message.run = run = None  # cut by this very message, which goes on all the same
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
            for sink in plan.sinks:  # in place, as most of what calls say ends here
                try:
                    sink(message)
                except BaseException as error:  # noqa: ASYNC103, BLE001 - told, and the others get the message
                    self._failing.failed("sink_failed", sink, message, as_error(error))
                else:
                    if self._failing.known:
                        self._failing.works("sink_failed", sink)
        finally:
            self._depth = depth
            if not depth and self._after:
                self._run_after()

    def _refuse_deeper(self, message: Message) -> NoReturn:
        # From here on all that is published within this publication is refused, else two chains
        # that trigger each other twice would go on for 2 ** 32 publications.
        self._depth_limit = 0
        self._after.insert(0, self._allow_depth)
        raise PublishLoopError(message.alias, DEPTH_LIMIT)

    def _allow_depth(self) -> None:
        self._depth_limit = DEPTH_LIMIT

    def call_after(self, fn: Callable[[], None]) -> None:
        """Call a function once the publication under way is over; at once if there is none.

        Args:
            fn: A plain function; one that is already waiting is called once.
        """
        if not self._depth:
            fn()
        elif fn not in self._after:
            self._after.append(fn)

    def _run_after(self) -> None:
        waiting, self._after = self._after, []
        for fn in waiting:
            self.notify(fn)

    def notify(self, listener: Callable[..., Any] | None, *args: Any) -> None:
        """Call whoever listens, if anybody does; what that raises is logged and goes no further."""
        if listener is None:
            return
        try:
            listener(*args)
        except BaseException as caught:  # noqa: ASYNC103 - see as_error()
            error = as_error(caught)
            if listener is not self.on_error:
                self.caught(error)
            log.exception("listener_failed", listener=name_of(listener), exc_info=error)

    def caught(self, error: Exception) -> None:
        """Show ``on_error`` an exception that goes no further."""
        self.notify(self.on_error, error)

    # --- runs ---------------------------------------------------------------------------------

    def new_run(self, runtime: RouteRuntime, message: Message) -> Run:
        """Make a run; its runtime carries it out."""
        self._runs += 1
        return Run(runtime, self._runs, message, trio.current_time())

    def failed(self, run: Run | None, runtime: RouteRuntime, stage: str, error: Exception) -> None:
        """Log a failure of a chain and tell whoever listens; the other chains go on.

        One that goes on with each message is told once, until that stage works again.
        """
        self.caught(error)
        if not runtime.is_news(run, stage, error):
            return
        log.error(
            "stage_failed",
            route=str(runtime.route),
            stage=stage,
            error=type(error).__name__,
            pii_error=text_of(error),
            exc_info=error,
        )
        if self._depth_limit and not self._telling:
            self._tell_failure(run, runtime, stage, error)
        elif not self._telling:
            self.call_after(partial(self._tell_failure, run, runtime, stage, error))

    def _tell_failure(
        self, run: Run | None, runtime: RouteRuntime, stage: str, error: Exception
    ) -> None:
        self._telling = True  # a failure that comes of telling one is only logged
        try:
            self.notify(self.on_failure, run, runtime.route, stage, error)
        finally:
            self._telling = False

    def hold_all(self, source: str) -> None:
        """Hold every run of a source in place, past all rules, and begin no more.

        What triggers its chains meanwhile waits in line.  Chains of sync stages still work.
        """
        for runtime in self._all:
            if runtime.source == source:
                runtime.hold_all()

    def go_on(self, source: str) -> None:
        """Let go on what ``hold_all()`` has held, and begin what has waited."""
        for runtime in self._all:
            if runtime.source == source:
                runtime.go_on()

    def waiting(self, source: str) -> list[Message]:
        """Return the triggers that wait in line in the chains of a bridge, in their order."""
        mine = (runtime for runtime in self._all if runtime.source == source)
        return [message for runtime in mine for message in runtime.queued]

    def hand_on(
        self, source: str, target: str, meant: Callable[[Message], bool], reason: str
    ) -> None:
        """Let the chains of one bridge act on what waits in line in another's streaming chains.

        A chain that works on such a message already, or has it in its own line, is left alone.

        Args:
            source: The bridge whose triggers are taken away.
            target: The bridge whose chains are triggered, where they are meant for the message.
            meant: Which triggers.
            reason: Why, for people.
        """
        hand_on(self._all, source, target, meant, reason, self.failed)

    def cut_all(
        self,
        reason: str,
        source: str | None = None,
        cause: Message | None = None,
        *,
        aside: bool = True,
    ) -> int:
        """Cut every run, whatever protects it, and forget the triggers that wait.

        Args:
            reason: Why, for people.
            source: Only the runs of this bridge; ``None`` means all.
            cause: The message that cuts them, if one does.
            aside: Whether runs in the background are cut too.

        Returns:
            How many runs were cut.
        """
        cut = 0
        for runtime in self._all:
            if source is None or runtime.source == source:
                cut += runtime.cut_all(cause, reason, aside=aside)
        return cut

    def close(self, outcome: Outcome) -> None:
        """End every run now, with this outcome, and begin no more.

        Args:
            outcome: ``disconnected`` or ``shutdown``.
        """
        self.closing = self.closing or outcome
        self._failing.close()
        for runtime in self._all:
            runtime.close(self.closing)

    def _seal(self) -> None:
        self.closed = True
        self._plans.clear()

    @property
    def _all(self) -> tuple[RouteRuntime, ...]:
        return (*self._routes.values(), *self._retired)

    def call_at(self, key: object, at_s: float, fn: Callable[[], None]) -> None:
        """Call a plain function at a time, unless ``forget(key)`` comes before.

        Args:
            key: Whose alarm it is; a second one for the same key takes the place of the first.
            at_s: When, in seconds of trio's clock.
            fn: What to call; what it raises is logged.
        """
        self._alarms.put(key, at_s, fn)

    def forget(self, key: object) -> None:
        """Take an alarm away, if there is one."""
        self._alarms.take_away(key)
