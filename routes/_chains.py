"""The chains of a router, and what they, its observers and its sinks do with an event's messages.

What depends only on the class of an event is decided once, in a plan; a message then takes plain
function calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial, wraps

from ._chain_runtime import RouteRuntime
from ._dispatch import Plan, Receiver
from ._event_match import Matcher, Predicate, all_met
from ._message import Message
from ._route import Route
from .error_containment import as_error

Meant = list[tuple[Matcher, Receiver]]
"""Which messages, and who gets them."""


class Chains(dict[type, Plan]):
    """The chains of one router, in the order in which they were started, and the plans they make.

    Plans are kept by the class of the event; looking one up makes it if it is missing.
    """

    def __init__(self) -> None:
        super().__init__()
        self._at_work: dict[Route, RouteRuntime] = {}
        self._retired: dict[RouteRuntime, None] = {}  # removed ones, whose last runs are not over
        self._paused: set[str] = set()
        self._before_rules: Meant = []
        self._observers: Meant = []
        self._sinks: Meant = []
        self._is_closed = False

    # --- chains -------------------------------------------------------------------------------

    @property
    def at_work(self) -> tuple[RouteRuntime, ...]:
        """The chains that start runs."""
        return tuple(self._at_work.values())

    @property
    def all(self) -> tuple[RouteRuntime, ...]:
        """The chains at work, and removed chains that still have runs."""
        return (*self._at_work.values(), *self._retired)

    def of(self, source: str) -> list[RouteRuntime]:
        """Return the chains of a bridge, including removed ones that still have runs."""
        return [chain for chain in self.all if chain.source == source]

    def runtime(self, route: Route) -> RouteRuntime:
        """Return a chain at work.

        Raises:
            KeyError: The chain was extended since, and is no longer at work.
        """
        return self._at_work[route]

    def install(self, chain: RouteRuntime, instead_of: Route | None) -> None:
        """Add a chain, in place of the one that it extends; paused if its bridge is."""
        if chain.source in self._paused:
            chain.kept.pause_all()
        if instead_of not in self._at_work:
            self._at_work[chain.route] = chain
        else:
            replaced = self._at_work[instead_of]
            self._at_work = {
                (chain.route if old is instead_of else old): (chain if old is instead_of else kept)
                for old, kept in self._at_work.items()
            }
            self._retire(replaced)
        self.clear()

    def pause(self, source: str) -> None:
        """Pause the chains of a bridge, and those that it will declare before ``resume()``."""
        self._paused.add(source)
        for chain in self.of(source):
            chain.kept.pause_all()

    def resume(self, source: str) -> None:
        """Resume the chains of a bridge."""
        self._paused.discard(source)
        for chain in self.of(source):
            chain.kept.resume_all()
            chain.start_waiting()

    def remove(self, source: str) -> None:
        """Remove the chains of a bridge: they start no more runs."""
        for route in [route for route in self._at_work if route.source == source]:
            self._retire(self._at_work.pop(route))
        self.clear()

    def _retire(self, chain: RouteRuntime) -> None:
        chain.forget()
        if chain.runs:
            self._retired[chain] = None  # its rules apply until its last run has ended

    def forget(self, chain: RouteRuntime) -> None:
        """Forget a removed chain whose last run has ended."""
        if chain in self._retired:
            del self._retired[chain]
            self.clear()

    def hand_on(
        self,
        source: str,
        target: str,
        meant: Callable[[Message], bool],
        reason: str,
        unfinished: Iterable[Message],
    ) -> None:
        """Move the queued triggers of one bridge's streaming chains to another bridge's chains.

        Args:
            source: The bridge that loses its triggers.
            target: The bridge whose matching chains they trigger.
            meant: Which triggers to move.
            reason: Why, as text for people.
            unfinished: Further messages to move, whose runs at the source were cut.
        """
        given = {message.id: message for message in unfinished}
        for chain in self.of(source):
            if chain.route.streams:
                taken = chain.queue.drop_where(meant, reason)
                given.update((message.id, message) for message in taken)
        for _, message in sorted(given.items()):
            for chain in self.of(target):
                trigger = chain.route.trigger
                checks = trigger.matcher.for_class(type(message.event))
                if checks is None or chain.removed or chain.has_run_or_trigger(message):
                    continue
                _guarded(chain, trigger.written, checks, chain.trigger)(message)

    # --- plans --------------------------------------------------------------------------------

    def add_observer(self, meant: Matcher, fn: Receiver, *, before_rules: bool) -> None:
        """Call a function with matching messages after the rules, or before them."""
        (self._before_rules if before_rules else self._observers).append((meant, fn))
        self.clear()

    def add_sink(self, meant: Matcher, fn: Receiver) -> None:
        """Call a function with matching messages after all chains."""
        self._sinks.append((meant, fn))
        self.clear()

    def close(self) -> None:
        """Do nothing with any message from now on."""
        self._is_closed = True
        self.clear()

    def __missing__(self, cls: type) -> Plan:
        if self._is_closed:
            return Plan()
        plan = self[cls] = self._plan(cls)
        if plan.triggers:  # plan now what may cut the runs, so that no cut waits for its plan
            for chain in self.all:
                for rule in chain.route.rules:
                    for other in (rule.matcher.types or ()) if rule.cuts else ():
                        self[other]
        return plan

    def _plan(self, cls: type) -> Plan:
        cuts: list[Receiver] = []
        others: list[Receiver] = []
        triggers: list[Receiver] = []
        for chain in self.all:
            for rule in chain.route.rules:
                checks = _checks(rule.matcher, cls)
                if checks is not None:
                    act = _guarded(chain, rule.written, checks, partial(rule.apply, chain))
                    (cuts if rule.cuts else others).append(act)
            trigger = chain.route.trigger
            if not chain.removed and chain.route.stages:
                checks = _checks(trigger.matcher, cls)
                if checks is not None:
                    triggers.append(_guarded(chain, trigger.written, checks, chain.trigger))
        rules = (*_matching(self._before_rules, cls), *cuts, *others)
        observers, sinks = _matching(self._observers, cls), _matching(self._sinks, cls)
        return Plan(rules, tuple(observers), tuple(triggers), tuple(sinks))


def _guarded(
    chain: RouteRuntime, what: str, checks: tuple[Predicate, ...], act: Receiver
) -> Receiver:
    """Return what acts on a message that meets all conditions; errors of these are reported."""
    if not checks:
        return act
    check = checks[0] if len(checks) == 1 else partial(all_met, checks)

    def act_if_meant(message: Message) -> None:
        try:
            meant = check(message)
        except BaseException as error:  # noqa: ASYNC103, BLE001 - a fault of the chain, reported
            chain.failed(None, what, as_error(error))
            return  # noqa: ASYNC104 - see as_error()
        if chain.failures.known is not None:
            chain.works(what)
        if meant:
            act(message)

    return act_if_meant


def _checks(meant: Matcher, cls: type) -> tuple[Predicate, ...] | None:
    if meant.types is not None and not issubclass(cls, meant.types):
        return None
    return meant.for_class(cls)


def _matching(entries: Meant, cls: type) -> list[Receiver]:
    """Return the observers or sinks that get events of a class."""
    found: list[Receiver] = []
    for meant, fn in entries:
        checks = _checks(meant, cls)
        if checks is not None:
            found.append(_asked(fn, checks) if checks else fn)
    return found


def _asked(fn: Receiver, checks: tuple[Predicate, ...]) -> Receiver:
    @wraps(fn)
    def call_if_meant(message: Message) -> None:
        if all_met(checks, message):
            fn(message)

    return call_if_meant
