"""A chain as it is written: an immutable value that knows the router it belongs to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

from ._errors import RouteDefinitionError
from ._match import Matcher, Predicate, matcher, written_options
from ._rules import Gate, Interrupt, Overlap, Rule, an_interrupt
from ._stages import (
    Broadcast,
    Map,
    Stage,
    Stream,
    a_buffer,
    a_filter,
    a_map,
    a_stream,
    a_through,
    a_timeout,
)

if TYPE_CHECKING:
    from ._router import Router

QUEUE_LIMIT = 64
"""How many triggers wait behind a running one, by default; one more is dropped and counted."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """What starts a chain, and what happens when it is started again too early."""

    matcher: Matcher
    written: str
    overlap: Overlap = "queue"
    limit: float = 1
    """With ``concurrent`` how many runs may be active at once, with ``queue`` how many wait."""
    linked: bool = False
    """Whether a run ends when the run that caused it is cut."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """A chain: what triggers it, what interrupts it, and what it does.

    Begin one with ``bridge.on()``.  Each step returns a new chain and puts it in the place of the
    one it was made from, so the chain as last written is the one that runs.  Two steps made from
    the same chain make two chains.  ``repr()`` prints a chain as it was written.
    """

    router: Router = field(repr=False)
    source: str
    trigger: Trigger
    rules: tuple[Rule, ...] = ()
    stages: tuple[Stage, ...] = ()

    def interrupt_on(
        self,
        event: object,
        *,
        handler: Callable[..., Any] | None = None,
        condition: Predicate | None = None,
        source: str | Iterable[str] | None = None,
        **filters: Any,
    ) -> Route:
        """Cut the runs of this chain in the very step in which an event is published.

        Args:
            event: An event class, a list or tuple of them, an alias pattern (``"user.*"``), or a
                plain function over the message.
            handler: Sync or async; takes nothing, the message, or the message and the
                ``Interruption``.  It runs once for each run that was cut, after that run has
                unwound and before the next one begins, and may take at most
                ``Router.handler_s`` seconds.  It is not called when nothing was running.
            condition: A plain function of the message that decides, in the same step, whether this
                event interrupts; ``None`` always does.
            source: The names of publishers that are meant; ``None`` means all.
            **filters: Field name to the value it must equal, or to a function of the value.

        Raises:
            RouteDefinitionError: A wrong type, a duplicate, an unknown alias or field.
        """
        where = ".interrupt_on()"
        matched = matcher(event, where, source=source, filters=filters)
        self._refuse_second(Interrupt, matched, where)
        options = written_options(filters, source)
        rule = an_interrupt("interrupt_on", matched, options, handler, condition, suspends=False)
        return self._with(rules=(*self.rules, rule))

    def suspend_on(
        self,
        event: object,
        *,
        handler: Callable[..., Any] | None = None,
        condition: Predicate | None = None,
        **filters: Any,
    ) -> Route:
        """Cut the runs of this chain and keep it from triggering until a ``.resume_on()`` event.

        Args:
            event: As in ``interrupt_on()``.
            handler: As in ``interrupt_on()``.
            condition: As in ``interrupt_on()``.
            **filters: As in ``interrupt_on()``.
        """
        where = ".suspend_on()"
        matched = matcher(event, where, filters=filters)
        self._refuse_second(Interrupt, matched, where)
        options = written_options(filters, None)
        rule = an_interrupt("suspend_on", matched, options, handler, condition, suspends=True)
        return self._with(rules=(*self.rules, rule))

    def pause_on(self, event: object, **filters: Any) -> Route:
        """Hold the runs of this chain in place, at their next value, until a resuming event.

        Args:
            event: As in ``interrupt_on()``.
            **filters: As in ``interrupt_on()``.
        """
        return self._gate("pause_on", event, filters, opens=False)

    def resume_on(self, event: object, **filters: Any) -> Route:
        """Let held runs go on where they stopped, and a suspended chain trigger again.

        Args:
            event: As in ``interrupt_on()``.
            **filters: As in ``interrupt_on()``.
        """
        return self._gate("resume_on", event, filters, opens=True)

    def map(self, fn: Callable[..., Any]) -> Route:
        """Call a function, sync or async, and pass on what it gives.

        Args:
            fn: Takes the message in the first stage, else what the stage before gave.  ``None``
                goes no further; what a generator yields goes on one by one.
        """
        return self._with(stages=(*self.stages, a_map(fn)))

    def filter(self, fn: Callable[..., Any]) -> Route:
        """Let a value pass only when a function of it, sync or async, is true.

        Args:
            fn: Takes the message in the first stage, else what the stage before gave.
        """
        return self._with(stages=(*self.stages, a_filter(fn)))

    def stream(self, source: Callable[..., Any] | Iterable[Any] | object) -> Route:
        """Pass on, one by one, what a generator yields.

        Args:
            source: A generator function, sync or async, or a function that returns an iterator, a
                list or a single value; it is called for each trigger.  Or something that can be
                iterated again and again, such as a list: each trigger gets all of it.

        Raises:
            RouteDefinitionError: It can be iterated only once, as ``node.generate()``, with
                parentheses, can; or it takes more than one argument.
        """
        return self._with(stages=(*self.stages, a_stream(source)))

    def through(self, fn: Callable[..., Any]) -> Route:
        """Hand the stream of values to a function that gives another stream.

        Args:
            fn: Takes an async iterator and returns one, such as an async generator that joins
                pieces of text to sentences.
        """
        return self._with(stages=(*self.stages, a_through(fn)))

    def buffer(self, size: int) -> Route:
        """Run the stages before this one and those after it at once.

        Args:
            size: How many values the stages before may be ahead, from 1.
        """
        return self._with(stages=(*self.stages, a_buffer(size)))

    def timeout(self, limit_s: float) -> Route:
        """Fail the run when the stages before this one do not give their next value in time.

        Args:
            limit_s: Seconds for each value, the first included.  Time in which a run is paused does
                not count.
        """
        return self._with(stages=(*self.stages, a_timeout(limit_s)))

    def broadcast(self) -> Route:
        """Publish each value as an event to the routes and sinks of the call, and pass it on."""
        return self._with(stages=(*self.stages, Broadcast()))

    def on(self, event: object, **options: Any) -> Route:
        """Begin the next chain of the same bridge.

        Args:
            event: As in ``bridge.on()``.
            **options: As in ``bridge.on()``.
        """
        return new_route(self.router, self.source, event, **options)

    def _with(self, **changes: Any) -> Route:
        route = replace(self, **changes)
        self.router.put(route, instead_of=self)
        return route

    def _gate(self, word: str, event: object, filters: Mapping[str, Any], *, opens: bool) -> Route:
        matched = matcher(event, f".{word}()", filters=filters)
        self._refuse_second(Gate, matched, f".{word}()", opens=opens)
        written = ", ".join([str(matched), *written_options(filters, None)])
        rule = Gate(matched, opens, f"{word}({written})")
        return self._with(rules=(*self.rules, rule))

    def _refuse_second(
        self, kind: type[Rule], matched: Matcher, where: str, *, opens: bool | None = None
    ) -> None:
        for rule in self.rules:
            same_kind = isinstance(rule, kind) and getattr(rule, "opens", None) == opens
            if same_kind and not matched.checks and not rule.matcher.checks:
                for spec in matched.specs:
                    if spec in rule.matcher.specs:
                        name = spec.__name__ if isinstance(spec, type) else repr(spec)
                        raise RouteDefinitionError(
                            f"{where} names {name}, but {rule} of this chain does so already; "
                            "join the two"
                        )

    @property
    def streams(self) -> bool:
        """Whether it streams something and broadcasts it."""
        kinds = {type(stage) for stage in self.stages}
        return Stream in kinds and Broadcast in kinds

    @property
    def broadcasts(self) -> bool:
        """Whether it publishes what its stages give."""
        return any(isinstance(stage, Broadcast) for stage in self.stages)

    @property
    def goes_nowhere(self) -> bool:
        """Whether it streams something that it neither publishes nor gives to a function."""
        kinds = [type(stage) for stage in self.stages]
        if Stream not in kinds or Broadcast in kinds:
            return False
        last = len(kinds) - 1 - kinds[::-1].index(Stream)
        return Map not in kinds[last:]

    @property
    def can_be_cut(self) -> bool:
        """Whether something of its own declaration cuts its runs: a rule, or an option of on()."""
        has_rule = any(isinstance(rule, Interrupt) for rule in self.rules)
        return has_rule or self.trigger.linked or self.trigger.overlap == "restart"

    @property
    def answers(self) -> bool:
        """Whether its runs are answers: streamed, broadcast, and cut by a rule of their own."""
        return self.streams and any(isinstance(rule, Interrupt) for rule in self.rules)

    def __str__(self) -> str:
        steps = "".join(f".{rule}" for rule in self.rules) + "".join(map(str, self.stages))
        return f"bridge.{self.trigger.written}{steps}"

    __repr__ = __str__


def new_route(
    router: Router,
    from_source: str,
    event: object,
    *,
    where: Predicate | None = None,
    source: str | Iterable[str] | None = None,
    overlap: Overlap = "queue",
    limit: int | None = None,
    linked: bool = False,
    **filters: Any,
) -> Route:
    """Begin a chain.

    Args:
        router: The router it belongs to.
        from_source: The name that what it broadcasts will carry.
        event: An event class (and with it its subclasses), a list or tuple of them, an alias or
            alias pattern (``"user.*"``), or a plain function over the message.
        where: A further plain function of the message.
        source: The names of publishers that are meant; ``None`` means all.
        overlap: What a trigger does while a run is active: ``queue`` waits, bounded and in order;
            ``restart`` cuts the running one and takes its place; ``drop`` ignores the trigger;
            ``concurrent`` runs beside it.
        limit: With ``concurrent`` how many runs may be active at once (one more waits); with
            ``queue`` how many triggers may wait, 64 by default (one more is dropped, counted and
            logged).
        linked: Whether a run of this chain ends when the run that caused it is cut.
        **filters: Field name to the value it must equal, or to a function of the value.

    Raises:
        RouteDefinitionError: A wrong type, a duplicate, an unknown alias, field or option.
    """
    if overlap not in ("queue", "restart", "drop", "concurrent"):
        raise RouteDefinitionError(
            f"overlap= is 'queue', 'restart', 'drop' or 'concurrent', not {overlap!r}"
        )
    if limit is not None and overlap not in ("queue", "concurrent"):
        raise RouteDefinitionError(f"limit= has no meaning with overlap={overlap!r}; leave it out")
    if limit is not None and (not isinstance(limit, int) or limit is True or limit < 1):
        raise RouteDefinitionError(f"limit= is a whole number from 1 up, not {limit!r}")
    matched = matcher(event, "bridge.on()", where=where, source=source, filters=filters)
    options = written_options(filters, source, where)
    options += [f"overlap={overlap!r}"] if overlap != "queue" else []
    options += [f"limit={limit}"] if limit is not None else []
    options += ["linked=True"] if linked else []
    written = f"on({', '.join([str(matched), *options])})"
    trigger = Trigger(matched, written, overlap, limit or _default_limit(overlap), linked)
    route = Route(router, from_source, trigger)
    router.put(route, instead_of=None)
    return route


def _default_limit(overlap: Overlap) -> float:
    return {"queue": QUEUE_LIMIT, "concurrent": math.inf}.get(overlap, 1)
