"""Applies a rule of a chain to its runs: cuts, pauses or resumes them."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from ._chain_failures import ChainFailures
from ._chain_runs import ChainRuns
from ._decision_log import DecisionLog
from ._message import Message
from ._router_protocol import ChainRouter
from ._rules import Interrupt, PauseRule, Rule
from ._run import Run
from ._run_outcome import RouteVerdict
from ._stage_pipeline import Pending
from ._stage_results import ResultKind, kind_of
from ._trigger_queue import TriggerQueue
from ._user_errors import as_error

R = TypeVar("R", Interrupt, PauseRule)

ALL_PAUSED = "everything is paused until resume_all()"


class RuledChain(Protocol):
    """What rules need from their chain."""

    failures: ChainFailures

    def is_withheld(self, message: Message) -> bool:
        """Return whether a message is withheld from this chain, and record the decision if so."""
        ...

    def failed(self, run: Run | None, stage: str, error: Exception) -> None:
        """Report a failure of this chain."""
        ...

    def start_waiting(self) -> None:
        """Start runs for queued triggers while there are places."""
        ...


class RuleAction(Generic[R]):
    """Applies a rule in the scheduler step in which a matching message is published.

    Attributes:
        rule: The rule.
    """

    __slots__ = ("_chain", "_decisions", "_queue", "_router", "_runs", "rule")

    def __init__(
        self,
        rule: R,
        chain: RuledChain,
        router: ChainRouter,
        runs: ChainRuns,
        queue: TriggerQueue,
        decisions: DecisionLog,
    ) -> None:
        self.rule: R = rule
        self._chain = chain
        self._router = router
        self._runs = runs
        self._queue = queue
        self._decisions = decisions

    def apply(self, message: Message) -> None:
        """Apply the rule for a matching message."""
        raise NotImplementedError


class InterruptAction(RuleAction[Interrupt]):
    """Cuts the runs of a chain."""

    __slots__ = ("_asks", "_why")

    def __init__(self, rule: Interrupt, *parts: Any) -> None:
        super().__init__(rule, *parts)
        self._asks = rule.condition is not None
        self._why = rule.written

    def apply(self, message: Message) -> None:
        """Cut the runs that the rule may cut, for a matching message; the caller reports them."""
        if self._router.withholds is not None and self._chain.is_withheld(message):
            return
        rule, runs = self.rule, self._runs
        if self._asks and not self._is_met(rule, message):
            return
        if runs.all_paused is not None and (runs.live() or self._queue.waiting):
            self._decisions.add(message, "gated", f"{rule.written}: {ALL_PAUSED}")
            return
        if rule.suspends:
            runs.suspend()
            self._decisions.add(message, "suspended", rule.written)
        acted = spares = False
        if self._queue.waiting:
            acted = self._drop_queue()  # first: it is explained before the cuts are
        why, at_s = self._why, message.at_s
        for run in (*runs.active, *runs.delivered):
            if run.times_protected:
                spares = spares or not run.is_cut
            elif run.cut_unreported(message, rule, why, at_s):
                acted = True
        if spares and not acted:
            self._decisions.add(message, "gated", f"{why}: what is being said is not interruptible")
        elif not acted:
            self._decisions.add(message, "idle", f"{why}: nothing was running")

    def _drop_queue(self) -> bool:
        """Drop the queued triggers, unless all runs are protected; return whether it did."""
        live = self._runs.live()
        if live and all(run.times_protected for run in live):
            return False
        self._queue.drop_all(self.rule.written)
        return True

    def _is_met(self, rule: Interrupt, message: Message) -> bool:
        """Return whether the condition of a rule is met."""
        if not (rule.suspends or self._runs.live() or self._queue.waiting):
            return True  # nothing to cut: no condition is asked
        return rule.condition is None or self._allows(rule, message)

    def _allows(self, rule: Interrupt, message: Message) -> bool:
        """Return the verdict of a rule's condition; a condition that raises counts as true."""
        assert rule.condition is not None
        try:
            allowed = rule.condition(message)
            if kind_of(allowed) is ResultKind.AWAITABLE:
                Pending(allowed, 0, "").discard()
                raise TypeError(f"a condition returns True or False, not {allowed!r}")
        except BaseException as error:  # noqa: ASYNC103, BLE001 - reported; silence is the safer side to err on
            self._chain.failed(None, rule.written, as_error(error))
            return True  # noqa: ASYNC104 - see as_error()
        if self._chain.failures.known is not None:
            self._chain.failures.works(rule.written)
        if not allowed:
            why = f"{rule.written}: the condition was {allowed!r}"
            self._decisions.add(message, "gated", why)
        return bool(allowed)


class PauseAction(RuleAction[PauseRule]):
    """Pauses the runs of a chain, or resumes them."""

    __slots__ = ()

    def apply(self, message: Message) -> None:
        """Pause or resume the runs as the rule says, for a matching message."""
        rule = self.rule
        if self._router.withholds is not None and self._chain.is_withheld(message):
            return
        awakes = rule.opens and self._runs.awake()
        if self._runs.all_paused is not None:
            if awakes:  # what was triggered meanwhile starts when everything resumes
                self._decisions.add(message, "resumed", f"{rule.written}: 0 runs")
            else:
                self._decisions.add(message, "gated", f"{rule.written}: {ALL_PAUSED}")
            return
        waiting = self._router.async_sinks.waiting
        over = (run for run in self._runs.delivered if run in waiting)
        runs = (*self._runs.active, *over)
        touched = [run for run in runs if run.is_paused is rule.opens and not run.is_cut]
        for run in touched:
            if rule.opens:
                run.resume()
            else:
                run.pause()
        verdict: RouteVerdict = "resumed" if rule.opens else "paused"
        done = verdict if touched or awakes else "idle"
        self._decisions.add(message, done, f"{rule.written}: {len(touched)} runs")
        if awakes:
            self._chain.start_waiting()


def action_of(
    rule: Rule,
    chain: RuledChain,
    router: ChainRouter,
    runs: ChainRuns,
    queue: TriggerQueue,
    decisions: DecisionLog,
) -> InterruptAction | PauseAction:
    """Return what applies a rule to the runs and the queued triggers of its chain."""
    if isinstance(rule, Interrupt):
        return InterruptAction(rule, chain, router, runs, queue, decisions)
    return PauseAction(rule, chain, router, runs, queue, decisions)
