"""What to do with a message: decided once per event class, then plain function calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, is_dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from ._event_match import Matcher, Predicate
from ._message import Message
from ._rules import Interrupt
from ._stage_results import ResultKind, kind_of
from ._user_errors import as_error

if TYPE_CHECKING:
    from ._active_chains import ChainKeeper
    from ._chain_runtime import RouteRuntime

MessageObserver = Callable[[Message], Any]
Meant = list[tuple[Matcher, MessageObserver, bool]]
"""Which messages, who gets them, and whether that may wait until cut runs have had their step."""


@dataclass(slots=True, eq=False)
class Plan:
    """What to do with messages of one event class."""

    rules: tuple[MessageObserver, ...]
    """The rules, and the observers called before them."""
    first: tuple[MessageObserver, ...]
    triggers: tuple[Callable[[Message], None], ...]
    sinks: tuple[MessageObserver, ...]
    rest: Plan | None = None
    """Everything that follows the rules, if all of it may wait; ``None`` if not."""
    reports_later: bool = False
    """Whether cuts by such messages are reported only after the next step of the runs."""
    rest_after_cut: Plan | None = None
    """The rest, if it and the reports of cuts by such messages wait for that step."""

    def report_cuts(self, *, later: bool) -> None:
        """Report cuts by such messages at once, or only after the next step of the runs."""
        self.reports_later = later
        self.rest_after_cut = self.rest if later else None


NOTHING = Plan((), (), (), ())
"""The plan of a router that is closed."""

publishable: set[type] = set()
"""The classes that ``is_event()`` has accepted."""


def is_event(value: object) -> bool:
    """Whether a value can be published: a pydantic model, or a dataclass."""
    cls = type(value)
    if isinstance(value, BaseModel) or is_dataclass(cls):
        publishable.add(cls)
        return True
    return False


def hint_at_event(value: object) -> str:
    """Return how to make a value publishable, as text for an error."""
    if kind_of(value) is ResultKind.CHANNEL:
        return "pass the function that returns it to .stream(), which iterates it"
    if isinstance(value, type):
        return f"make an event of it: {value.__name__}(...)"
    if isinstance(value, (list, tuple)) and value and all(map(is_event, value)):
        return "publish its events one by one"
    return "wrap it in an event, such as AgentResponse(content=...)"


def all_met(checks: tuple[Predicate, ...], message: Message) -> bool:
    """Whether a message meets all conditions."""
    for check in checks:  # noqa: SIM110 - a generator expression costs more than the checks
        if not check(message):
            return False
    return True


def matching(entries: Meant, cls: type) -> list[MessageObserver]:
    """Return the observers or sinks that get events of a class."""
    found: list[MessageObserver] = []
    for meant, fn, _ in entries:
        # No call for each entry: most do not match, and each call plans each class.
        if meant.types is None or meant.unless:
            checks = meant.for_class(cls)
        else:
            checks = meant.checks if issubclass(cls, meant.types) else None
        if checks is not None:
            found.append(_asked(fn, checks) if checks else fn)
    return found


def _asked(fn: MessageObserver, checks: tuple[Predicate, ...]) -> MessageObserver:
    @wraps(fn)
    def call_if_meant(message: Message) -> None:
        if all_met(checks, message):
            fn(message)

    return call_if_meant


def plan_of(
    cls: type, chains: Iterable[RouteRuntime], before: Meant, first: Meant, sinks: Meant
) -> Plan:
    """Decide what to do with messages of an event class.

    Args:
        cls: The class of the event.
        chains: All chains at work, and removed ones that still have runs.
        before: The observers called before the rules.
        first: The other observers.
        sinks: The sinks.
    """
    cuts: list[MessageObserver] = []
    gates: list[MessageObserver] = []
    triggers: list[MessageObserver] = []
    for runtime in chains:
        for action in runtime.actions:
            rule = action.rule
            types = rule.matcher.types
            if types is not None and not issubclass(cls, types):
                continue
            checks = rule.matcher.for_class(cls)
            if checks is not None:
                acts = cuts if isinstance(rule, Interrupt) else gates
                acts.append(guarded(runtime, rule.written, checks, action.apply))
        if runtime.removed or not runtime.route.stages:
            continue
        trigger = runtime.route.trigger
        types = trigger.matcher.types
        if types is not None and not issubclass(cls, types):
            continue
        checks = trigger.matcher.for_class(cls)
        if checks is not None:
            act = runtime.trigger
            triggers.append(guarded(runtime, trigger.written, checks, act))
    observers, takers = tuple(matching(first, cls)), tuple(matching(sinks, cls))
    rules = (*matching(before, cls), *cuts, *gates)
    plan = Plan(rules, observers, tuple(triggers), takers)
    in_a_hurry = [entry for entry in (*first, *sinks) if not entry[2]]
    if cuts and not triggers and not matching(in_a_hurry, cls):
        plan.rest = Plan((), observers, (), takers)
    return plan


class Plans(dict[type, Plan]):
    """The plans of a router by event class; looking one up makes it if it is missing."""

    __slots__ = ("_before", "_chains", "_first", "_is_closed", "_reports_later", "_sinks")

    def __init__(self, chains: ChainKeeper, reports_later: Callable[[type], bool]) -> None:
        """Start without observers and sinks.

        Args:
            chains: The chains of the router; ``clear()`` the plans whenever they have changed.
            reports_later: Whether cuts by events of a class are reported after the runs' next step.
        """
        super().__init__()
        self._chains = chains
        self._reports_later = reports_later
        self._before: Meant = []
        self._first: Meant = []
        self._sinks: Meant = []
        self._is_closed = False

    def add_observer(
        self, meant: Matcher, fn: MessageObserver, *, before_rules: bool, may_wait: bool
    ) -> None:
        """Call a function with matching messages after the rules, or before them."""
        (self._before if before_rules else self._first).append((meant, fn, may_wait))
        self.clear()

    def add_sink(self, meant: Matcher, fn: MessageObserver, *, may_wait: bool) -> None:
        """Call a function with matching messages after all chains."""
        self._sinks.append((meant, fn, may_wait))
        self.clear()

    def close(self) -> None:
        """Do nothing with any message from now on."""
        self._is_closed = True
        self.clear()

    def __missing__(self, cls: type) -> Plan:
        if self._is_closed:
            return NOTHING
        chains = self._chains.all
        plan = self[cls] = plan_of(cls, chains, self._before, self._first, self._sinks)
        plan.report_cuts(later=self._reports_later(cls))
        if plan.triggers:  # plan now what may cut the runs, so that no cut waits for its plan
            for other in interrupting(chains):
                self[other]
        return plan


def interrupting(chains: Iterable[RouteRuntime]) -> Iterator[type]:
    """Yield the event classes that interrupt rules of some chains name."""
    for runtime in chains:
        for rule in runtime.route.rules:
            if isinstance(rule, Interrupt):
                yield from rule.matcher.types or ()


def guarded(
    runtime: RouteRuntime,
    what: str,
    checks: tuple[Predicate, ...],
    act: MessageObserver,
) -> MessageObserver:
    """Return a function that acts on a message if it meets all conditions; errors are reported."""
    if not checks:
        return act
    check = checks[0] if len(checks) == 1 else partial(all_met, checks)

    def act_if_meant(message: Message) -> None:
        try:
            meant = check(message)
        except BaseException as error:  # noqa: ASYNC103, BLE001 - a fault of the chain, reported
            runtime.failed(None, what, as_error(error))
            return  # noqa: ASYNC104 - see as_error()
        if runtime.failures.known is not None:
            runtime.failures.works(what)
        if meant:
            act(message)

    return act_if_meant
