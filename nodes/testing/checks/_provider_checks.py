"""The checks that are the same for every provider: ears, voices and models.

A provider is used once and again: each use gives a result that can be compared with that of a use
in which nothing goes wrong.  A fault of the vendor's may cost the result, but then the provider
says so, by an error of ours and in time; it may never cost the truth, the next use, or a task.
"""

from __future__ import annotations

import gc
import tracemalloc
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import trio

from bargein.routes import BargeinError

from ..fakes import Fault, FaultKind, Stage
from ._check_report import Breach, CheckReport, CheckResult, ProviderCheckError
from ._trial import LEAVE_S, Trial, innermost, run_trial, shown, spread

P = TypeVar("P")
R = TypeVar("R")
T = TypeVar("T")

Make = Callable[[Fault | None], AbstractAsyncContextManager[P]]
"""Opens a provider whose vendor has this fault; None: none."""

STAGES: tuple[Stage, ...] = ("connect", "first", "middle", "last")

WARM_UP = 120
"""Uses before memory is measured: caches fill."""

LEAK_BYTES, NOISE_BYTES = 50, 262_144
"""How much the memory may grow with each use, in bytes: an empty dict is 64; and once for all: trio
itself keeps a thousand deadlines that are over."""

AGAIN_S = 1.0
"""How long after a fault it is used again, in seconds."""

OUTAGE_S, OUTAGES = 30.0, 5
"""How long after a failed use the next one is tried in an outage, and how often."""

PATIENCE_S = 30.0
"""For how long a slow reader reads nothing, in seconds."""


class ProviderUse(ABC, Generic[P, R]):
    """How a kind of provider is used, and what is right about what comes."""

    may_be_silent: ClassVar[Collection[Stage]] = ()
    """Where nobody can tell a vendor that stalls from one that has nothing to say."""

    @abstractmethod
    async def use(self, provider: P) -> R:
        """Use it once, as users do.

        Returns:
            What came.

        Raises:
            Breach: It makes no sense, whatever the vendor sends.
        """

    @abstractmethod
    async def use_briefly(self, provider: P) -> None:
        """Use it once, with as little as possible."""

    @abstractmethod
    async def use_nothing(self, provider: P) -> None:
        """Use it without words."""

    async def use_empty(self, provider: P) -> None:
        """Use it where the vendor's result is empty."""
        await self.use(provider)

    @abstractmethod
    async def leave_early(self, provider: P) -> None:
        """Begin to use it, and leave once something has come."""

    @abstractmethod
    async def read_nothing(self, provider: P, seconds: float) -> None:
        """Begin to use it, and take nothing that comes for so long."""

    @abstractmethod
    async def feed(self, provider: P, seconds: float) -> None:
        """Give it far more than it should take in so long."""

    @abstractmethod
    def difference(self, expected: R, came: R) -> str:
        """Return what of a result is not as it should be; empty if it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What is checked, and within which bounds."""

    can: Collection[FaultKind]
    within_s: float
    points: int | None
    times: int
    memory_bytes: int
    virtual: bool
    only: Collection[str] | None


Check = Callable[[], None]


class ProviderChecks(Generic[P, R]):
    """Runs the checks of one provider."""

    def __init__(self, subject: str, make: Make[P], use: ProviderUse[P, R], terms: Terms) -> None:
        """Keep what is checked."""
        self._subject = subject
        self._make = make
        self._use = use
        self._terms = terms
        self._expected: R | None = None
        self._steps = self._tasks = 0

    def run(self) -> CheckReport:
        """Run all checks.

        Raises:
            ProviderCheckError: One failed.
            RuntimeError: It was called from within trio.
            ValueError: `only` names a check that there is not.
        """
        if trio.lowlevel.in_trio_run():
            raise RuntimeError("a check runs trio itself: call it from a plain test")
        checks = self._checks()
        only = self._terms.only
        if unknown := set(only or ()) - set(checks):
            raise ValueError(f"only={sorted(unknown)!r}: there is {', '.join(checks)}")
        works = _result("works", self._works)
        results = [works]
        for name, (needs, check) in checks.items():
            if only is not None and name not in only:
                continue
            missing = sorted(set(needs) - set(self._terms.can))
            if missing:
                why = f"the fake cannot do {', '.join(missing)}"
                results.append(CheckResult(name, "skipped", why))
            elif works.outcome == "failed":
                results.append(CheckResult(name, "skipped", "it does not work at all"))
            else:
                results.append(_result(name, check))
        report = CheckReport(self._subject, tuple(results))
        if report.failed:
            raise ProviderCheckError(report)
        return report

    def _checks(self) -> dict[str, tuple[Iterable[FaultKind], Check]]:
        """Return each check by its name, with the faults that it needs."""
        return {
            "cancel": ((), self._cancel),
            "cancel_opening": ((), self._cancel_opening),
            "leave_early": ((), self._leave_early),
            "late": (("late",), self._late),
            "nothing": ((), self._nothing),
            "empty": (("empty",), self._empty),
            "stall": (("stall",), self._stall),
            "disconnect": (("drop", "close"), self._disconnect),
            "outage": (("refuse",), self._outage),
            "refuse": (("refuse",), self._refuse),
            "error": (("error",), self._error),
            "garbage": (("garbage",), self._garbage),
            "duplicate": (("duplicate",), self._duplicate),
            "reorder": (("reorder",), self._reorder),
            "slow": (("slow",), self._slow),
            "backwards": (("backwards",), self._backwards),
            "slow_reader": (("flood",), self._slow_reader),
            "deaf": (("deaf",), self._deaf),
            "leak": ((), self._leak),
        }

    # --- the checks: nothing goes wrong -----------------------------------------------------------

    def _works(self) -> None:
        async def main(provider: P, trial: Trial) -> None:
            with trio.CancelScope() as scope:
                trial.watch(scope)
                self._expected = await self._used(provider)
                self._steps = trial.steps
                trial.unwatch()
            await self._same(provider, "the second time")
            await trial.settle(0, "") if self._tasks else None
            await trio.sleep(LEAVE_S if self._terms.virtual else 0.3)
            self._tasks = trial.tasks

        self._run(None, main)

    def _cancel(self) -> None:
        for step in spread(self._steps, self._terms.points):

            async def main(provider: P, trial: Trial, step: int = step) -> None:
                await self._cancelled(lambda: self._used(provider), trial, step)
                await trial.settle(self._tasks, f"after a use that was cancelled at step {step}")
                await self._same(provider, f"after one that was cancelled at step {step}")
                await trial.settle(self._tasks, f"after the use behind that at step {step}")

            self._run(None, main)

    def _cancel_opening(self) -> None:
        steps = 0

        async def survey(trial: Trial) -> None:
            nonlocal steps
            with trio.CancelScope() as scope:
                trial.watch(scope)
                await self._open_and_use()
                steps = trial.steps

        run_trial(survey, virtual=self._terms.virtual)
        for step in spread(steps, self._terms.points):

            async def main(trial: Trial, step: int = step) -> None:
                before = trial.tasks
                await self._cancelled(self._open_and_use, trial, step)
                await trial.settle(before, f"after all was cancelled at step {step}")
                came = await self._open_and_use()
                self._compare(came, f"of a new one, after all was cancelled at step {step}")

            run_trial(main, virtual=self._terms.virtual)

    def _leave_early(self) -> None:
        async def main(provider: P, trial: Trial) -> None:
            for _ in range(3):
                await self._bounded(self._use.leave_early(provider), "to begin and to leave")
                await self._same(provider, "after one that was left in the middle")
            for _ in range(20):
                await self._bounded(self._use.leave_early(provider), "to begin and to leave")
            await self._same(provider, "after twenty that were left in the middle")
            await trial.settle(self._tasks, "after uses that were left in the middle")

        self._run(None, main)

    def _nothing(self) -> None:
        async def main(provider: P, trial: Trial) -> None:
            await self._bounded(self._use.use_nothing(provider), "the end of a use without words")
            await self._same(provider, "after one without words")

        self._run(None, main)

    def _leak(self) -> None:
        times = self._terms.times

        async def main(provider: P, trial: Trial) -> None:
            await self._use_many(provider, WARM_UP)
            before, tasks = _memory(), trial.tasks
            await self._use_many(provider, times)
            grown, most = _memory() - before, NOISE_BYTES + LEAK_BYTES * times
            await trial.settle(tasks, f"after {times} uses")
            if grown > most:
                raise Breach(f"at most {most:,} bytes more after {times} uses", f"{grown:,}")

        tracemalloc.start()
        try:
            self._run(None, main)
        finally:
            tracemalloc.stop()

    async def _use_many(self, provider: P, times: int) -> None:
        for number in range(times):
            act = self._use.leave_early if number % 2 else self._use.use_briefly
            await self._bounded(act(provider), f"use {number} of {times}")

    # --- the checks: the vendor goes wrong --------------------------------------------------------

    def _late(self) -> None:
        async def main(provider: P, trial: Trial) -> None:
            for _ in range(3):
                await self._bounded(self._use.leave_early(provider), "to begin and to leave")
                await self._same(provider, "while the vendor goes on with one that was cancelled")

        self._run(Fault("late", times=None), main)

    def _empty(self) -> None:
        async def main(provider: P, trial: Trial) -> None:
            await self._bounded(self._use.use_empty(provider), "the end of an empty result")

        self._run(Fault("empty", times=None), main)

    def _stall(self) -> None:
        for at in STAGES:
            if at not in self._use.may_be_silent:
                self._try(Fault("stall", at, None), "error")
                self._try(Fault("stall", at), "whole or error")

    def _disconnect(self) -> None:
        kinds: tuple[FaultKind, ...] = ("drop", "close")
        for kind in kinds:
            for at in STAGES:
                self._try(Fault(kind, at, None), "error")
                self._try(Fault(kind, at), "whole or error")
            self._try(Fault(kind, "after"), "whole")

    def _outage(self) -> None:
        async def main(provider: P, trial: Trial) -> None:
            failures = 0
            for _ in range(OUTAGES):
                try:
                    came = await self._used(provider, "while the vendor is out of reach")
                except BargeinError:
                    failures += 1
                    await trio.sleep(OUTAGE_S)
                else:
                    self._compare(came, f"after {failures} uses that failed")
                    return
            raise Breach(f"{shown(self._expected)} once the vendor is back", "errors")

        self._run(Fault("refuse", "connect", 2 * OUTAGES, 503), main)

    def _refuse(self) -> None:
        for status in (401, 429, 500, 503):
            self._try(Fault("refuse", "connect", None, status), "error")
        self._try(Fault("refuse", "connect", 1, 503), "whole or error")

    def _error(self) -> None:
        for at in STAGES[1:]:
            self._try(Fault("error", at, None), "error")
            self._try(Fault("error", at), "whole or error")

    def _garbage(self) -> None:
        for at in STAGES[1:]:
            self._try(Fault("garbage", at, None), "whole or error")

    def _duplicate(self) -> None:
        for at in STAGES[1:]:
            self._try(Fault("duplicate", at, None), "sane")

    def _reorder(self) -> None:
        for at in STAGES[1:3]:
            self._try(Fault("reorder", at, None), "sane")

    def _slow(self) -> None:
        for at in STAGES:
            self._try(Fault("slow", at, None), "whole")

    def _backwards(self) -> None:
        for at in STAGES[1:]:
            self._try(Fault("backwards", at, None), "sane")

    def _slow_reader(self) -> None:
        self._hold_memory(Fault("flood", "middle", None), self._use.read_nothing)

    def _deaf(self) -> None:
        self._hold_memory(Fault("deaf", times=None), self._use.feed)

    def _hold_memory(self, fault: Fault, act: Callable[[P, float], Awaitable[None]]) -> None:
        peak = 0

        async def main(provider: P, trial: Trial) -> None:
            nonlocal peak
            before = _memory()
            tracemalloc.reset_peak()
            try:
                await self._bounded(act(provider, PATIENCE_S), f"to leave ({fault})")
            except Exception as error:  # noqa: BLE001 (judged below)
                self._judge(innermost(error), fault)
            peak = tracemalloc.get_traced_memory()[1] - before

        tracemalloc.start()
        try:
            self._run(fault, main)
        finally:
            tracemalloc.stop()
        if peak > self._terms.memory_bytes:
            raise Breach(
                f"at most {self._terms.memory_bytes:,} bytes in memory ({fault})", f"{peak:,}"
            )

    # --- one run ----------------------------------------------------------------------------------

    def _run(self, fault: Fault | None, main: Callable[[P, Trial], Awaitable[None]]) -> None:
        async def opened(trial: Trial) -> None:
            async with self._make(fault) as provider:
                await main(provider, trial)

        run_trial(opened, virtual=self._terms.virtual)

    def _try(self, fault: Fault, wanted: str) -> None:
        """Use a provider whose vendor has a fault.

        Args:
            fault: What goes wrong.
            wanted: "whole", "error", "whole or error" or "sane": what may come of it.
        """
        outcome: R | Exception | None = None

        async def main(provider: P, trial: Trial) -> None:
            nonlocal outcome
            try:
                outcome = await self._used(provider, str(fault))
            except Breach:
                raise
            except Exception as error:  # noqa: BLE001 (judged below)
                outcome = error
                self._judge(innermost(error), fault)
            if fault.times is not None:
                await trio.sleep(AGAIN_S)
                await self._same(provider, f"after {fault}")
            await trial.settle(self._tasks, f"after {fault}")

        self._run(fault, main)
        failed = isinstance(outcome, Exception)
        if wanted == "error" and not failed:
            raise Breach(f"an error ({fault})", shown(outcome))
        if wanted == "whole" and failed:
            raise Breach(f"{shown(self._expected)} ({fault})", repr(outcome))
        if wanted in ("whole", "whole or error") and not failed:
            assert outcome is not None
            self._compare(outcome, f"({fault})")  # type: ignore[arg-type]  # no error

    def _judge(self, error: BaseException, fault: Fault) -> None:
        if isinstance(error, Breach):
            raise error
        if not isinstance(error, BargeinError):
            raise Breach(f"an error that is a BargeinError ({fault})", repr(error)) from error

    async def _open_and_use(self) -> R:
        async with self._make(None) as provider:
            return await self._used(provider)

    async def _used(self, provider: P, why: str = "all is well") -> R:
        return await self._bounded(self._use.use(provider), f"a result or an error ({why})")

    async def _same(self, provider: P, when: str) -> None:
        try:
            came = await self._used(provider, when)
        except BargeinError as error:
            raise Breach(f"{shown(self._expected)} {when}", repr(error)) from error
        self._compare(came, when)

    def _compare(self, came: R, when: str) -> None:
        assert self._expected is not None
        if wrong := self._use.difference(self._expected, came):
            raise Breach(f"{shown(self._expected)} {when}", f"{shown(came)}: {wrong}")

    async def _bounded(self, awaitable: Awaitable[T], what: str) -> T:
        limit_s = self._terms.within_s
        with trio.move_on_after(limit_s):
            try:
                return await awaitable
            except BaseExceptionGroup as group:
                error = innermost(group)
                if isinstance(error, trio.Cancelled):
                    raise
                raise error from group
        raise Breach(f"{what} within {limit_s:g} s", "it hangs")

    async def _cancelled(self, act: Callable[[], Awaitable[R]], trial: Trial, step: int) -> None:
        """Do something, and cancel it behind one of its steps."""
        result: R | None = None
        with trio.CancelScope() as scope:
            trial.watch(scope, step)
            try:
                result = await act()
            except Exception as error:
                wanted = f"a use that is cancelled at step {step} raises nothing else"
                raise Breach(wanted, repr(innermost(error))) from error
            finally:
                trial.unwatch()
        took_s = trio.current_time() - trial.cancelled_at_s
        if scope.cancelled_caught and took_s > LEAVE_S:
            raise Breach(f"a use cancelled at step {step} ends in {LEAVE_S:g} s", f"{took_s:g} s")
        if result is not None:
            self._compare(result, f"though it swallowed a cancellation at step {step}")


def _result(name: str, check: Check) -> CheckResult:
    try:
        check()
    except Breach as breach:
        return CheckResult(name, "failed", str(breach))
    except Exception as error:  # noqa: BLE001 (a provider raises what it likes)
        came = innermost(error)
        if isinstance(came, Breach):
            return CheckResult(name, "failed", str(came))
        return CheckResult(name, "failed", f"expected: no error\ncame: {came!r}")
    return CheckResult(name, "passed")


def _memory() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
