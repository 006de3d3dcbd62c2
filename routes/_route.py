"""A chain as written: an immutable value that knows its router."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, final

from ._chain_start import ChainStart
from ._chain_steps import ChainRules, ChainStages
from ._chain_types import T_co
from ._errors import RouteDefinitionError
from ._event_match import Matcher, Predicate, matcher, written_options
from ._rules import ChainRule, Overlap
from ._stages import Broadcast, Map, Stage, Stream, unpublishable

QUEUE_LIMIT = 64
"""How many triggers may wait by default; further ones are dropped and counted."""


class ChainInstaller(Protocol):
    """Runs the chains that are written: a router."""

    def install(self, route: Route, instead_of: Route | None) -> None:
        """Run a chain, in place of the one that it extends."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Trigger:
    """What triggers a chain, and what a trigger does while a run is active."""

    matcher: Matcher
    written: str
    overlap: Overlap = "queue"
    limit: float = 1
    """How many runs may be active (``concurrent``), or how many triggers may wait (``queue``)."""
    linked: bool = False
    """Whether a run ends when the run that caused it is cut."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Route(ChainRules, ChainStages[T_co], ChainStart):
    """A chain: what triggers it, what interrupts it, and what it does.

    To a type checker, ``Route[str]`` is a chain whose last stage produces strings; a chain without
    stages produces messages.

    Start one with ``bridge.on()``.  Each step returns a new chain that replaces the one it extends,
    so only the last one runs.  Extending the same chain twice makes two chains.  ``repr()`` prints
    a chain as written.
    """

    router: ChainInstaller = field(repr=False)
    source: str
    trigger: Trigger
    rules: tuple[ChainRule, ...] = ()
    stages: tuple[Stage, ...] = ()

    def _new_chain(self, event: object, **options: Any) -> Route[Any]:
        """Start another chain of the same bridge."""
        return new_route(self.router, self.source, event, **options)

    def _add_rule(self, rule: ChainRule, where: str) -> Self:
        self._refuse_second(rule, where)
        return self._instead(replace(self, rules=(*self.rules, rule)))

    def _add_stage(self, stage: Stage) -> Route[Any]:
        if stage == Broadcast() and self.stages[-1:] == (stage,):
            raise RouteDefinitionError(
                ".broadcast() stands twice: each value would be published, and said, twice; "
                f"{self} publishes its values already"
            )
        if isinstance(stage, Broadcast) and (wrong := unpublishable(self.stages)):
            raise RouteDefinitionError(
                f".broadcast() publishes events, and {wrong[0]} is annotated to give {wrong[1]}; "
                "make events of it first, such as .map(lambda text: AgentResponse(content=text))"
            )
        return self._instead(replace(self, stages=(*self.stages, stage)))

    def _instead(self, route: Self) -> Self:
        self.router.install(route, instead_of=self)
        return route

    def _refuse_second(self, new: ChainRule, where: str) -> None:
        for rule in self.rules:
            same_kind = type(rule) is type(new) or (rule.cuts and new.cuts)
            if same_kind and not new.matcher.checks and not rule.matcher.checks:
                for spec in new.matcher.specs:
                    if spec in rule.matcher.specs:
                        name = spec.__name__ if isinstance(spec, type) else repr(spec)
                        raise RouteDefinitionError(
                            f"{where} names {name}, but {rule} of this chain already does; "
                            "merge the two"
                        )

    @property
    def streams(self) -> bool:
        """Whether it streams something and broadcasts it."""
        kinds = {type(stage) for stage in self.stages}
        return Stream in kinds and Broadcast in kinds

    @property
    def broadcasts(self) -> bool:
        """Whether it publishes the values of its stages."""
        return any(isinstance(stage, Broadcast) for stage in self.stages)

    @property
    def goes_nowhere(self) -> bool:
        """Whether it streams values that it neither publishes nor passes to a function."""
        if self.broadcasts:
            return False
        for stage in reversed(self.stages):
            if isinstance(stage, (Stream, Map)):
                return isinstance(stage, Stream)
        return False

    @property
    def can_be_cut(self) -> bool:
        """Whether a rule or an option of ``on()`` can cut its runs."""
        has_rule = any(rule.cuts for rule in self.rules)
        return has_rule or self.trigger.linked or self.trigger.overlap == "restart"

    @property
    def answers(self) -> bool:
        """Whether its runs are answers: it streams, broadcasts, and has an interrupt rule."""
        return self.streams and any(rule.cuts for rule in self.rules)

    def __str__(self) -> str:
        steps = "".join(f".{rule}" for rule in self.rules) + "".join(map(str, self.stages))
        return f"bridge.{self.trigger.written}{steps}"

    __repr__ = __str__


def new_route(
    router: ChainInstaller,
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
    """Start a chain of a router.

    Args:
        router: The router it belongs to.
        from_source: The source of the messages it broadcasts.
        event: As in ``ChainStart.on()``, and so are the options.
        where: As there.
        source: As there.
        overlap: As there.
        limit: As there.
        linked: As there.
        **filters: As there.

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
    router.install(route, instead_of=None)
    return route


def _default_limit(overlap: Overlap) -> float:
    return {"queue": QUEUE_LIMIT, "concurrent": math.inf}.get(overlap, 1)
