"""Uses a provider repeatedly, and compares each result with that of a use without faults.

A vendor's fault may cost the result, but then the provider must raise one of our errors in time. It
must never produce a wrong result, break the next use, or leave a task behind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, Literal, TypeVar

import trio

from bargein.nodes.fakes import Fault
from bargein.routes import BargeinError
from bargein.routes.error_containment import first_error

from ._check_options import CompleteCheckOptions
from ._check_report import BreachError
from ._provider_use import Make, P, ProviderUse, R
from ._trial_run import LEAVE_S, Trial, run_trial, shown

T = TypeVar("T")

AGAIN_S = 1.0
"""How long after a fault the provider is used again, in seconds."""

Wanted = Literal["whole", "error", "whole or error", "sane"]
"""The allowed outcome of a fault; "sane" allows any result that makes sense."""


class ProviderTrials(Generic[P, R]):
    """Uses one provider in separate runs of trio.

    Attributes:
        expected: The result of a use without faults; ``None`` until it is known.
        steps: How many scheduler steps such a use takes.
        tasks: How many tasks exist between two uses.
    """

    def __init__(self, make: Make[P], use: ProviderUse[P, R], terms: CompleteCheckOptions) -> None:
        self._make = make
        self._use = use
        self._terms = terms
        self.expected: R | None = None
        self.steps = self.tasks = 0

    def learn(self) -> None:
        """Use the provider twice without faults, and remember the result.

        Raises:
            BreachError: The second result differs.
        """

        async def main(provider: P, trial: Trial) -> None:
            with trio.CancelScope() as scope:
                trial.watch(scope)
                self.expected = await self.used(provider)
                self.steps = trial.steps
                trial.unwatch()
            await self.same(provider, "the second time")
            await trio.sleep(LEAVE_S if self._terms.virtual else 0.3)
            self.tasks = trial.tasks

        self.run(None, main)

    def run(self, fault: Fault | None, main: Callable[[P, Trial], Awaitable[None]]) -> None:
        """Open a provider whose vendor has a fault, and run `main` with it.

        Raises:
            Exception: What `main` raises; a `BreachError` if tasks or files are left open.
        """

        async def opened(trial: Trial) -> None:
            async with self._make(fault) as provider:
                await main(provider, trial)

        run_trial(opened, virtual=self._terms.virtual)

    def attempt(self, fault: Fault, wanted: Wanted) -> None:
        """Use a provider whose vendor has a fault.

        Raises:
            BreachError: Something else came of it.
        """
        outcome: R | Exception | None = None

        async def main(provider: P, trial: Trial) -> None:
            nonlocal outcome
            try:
                outcome = await self.used(provider, str(fault))
            except BreachError:
                raise
            except Exception as error:  # noqa: BLE001 (judged below)
                outcome = error
                self.judge(first_error(error), fault)
            if fault.times is not None:
                await trio.sleep(AGAIN_S)
                await self.same(provider, f"after {fault}")
            await self.settle(trial, f"after {fault}")

        self.run(fault, main)
        failed = isinstance(outcome, Exception)
        if wanted == "error" and not failed:
            raise BreachError(f"an error ({fault})", shown(outcome))
        if wanted == "whole" and failed:
            raise BreachError(f"{shown(self.expected)} ({fault})", repr(outcome))
        if wanted in ("whole", "whole or error") and not failed:
            assert outcome is not None
            self.compare(outcome, f"({fault})")  # type: ignore[arg-type]  # no error

    def judge(self, error: BaseException, fault: Fault) -> None:
        """Raise a `BreachError` for an error that is not one of ours."""
        if isinstance(error, BreachError):
            raise error
        if not isinstance(error, BargeinError):
            raise BreachError(f"an error that is a BargeinError ({fault})", repr(error)) from error

    async def open_and_use(self) -> R:
        """Open a provider without a fault, use it once, and close it."""
        async with self._make(None) as provider:
            return await self.used(provider)

    async def used(self, provider: P, why: str = "all is well") -> R:
        """Use the provider once, within the time limit, and return the result."""
        return await self.bounded(self._use.use(provider), f"a result or an error ({why})")

    async def same(self, provider: P, when: str) -> None:
        """Use the provider once, and check that the result is that without faults."""
        try:
            came = await self.used(provider, when)
        except BargeinError as error:
            raise BreachError(f"{shown(self.expected)} {when}", repr(error)) from error
        self.compare(came, when)

    def compare(self, came: R, when: str) -> None:
        """Raise a `BreachError` if a result differs from that without faults."""
        assert self.expected is not None
        if wrong := self._use.difference(self.expected, came):
            raise BreachError(f"{shown(self.expected)} {when}", f"{shown(came)}: {wrong}")

    async def settle(self, trial: Trial, when: str) -> None:
        """Wait until only the tasks between two uses are left."""
        await trial.settle(self.tasks, when)

    async def bounded(self, awaitable: Awaitable[T], what: str) -> T:
        """Await something, and raise a `BreachError` if it hangs."""
        limit_s = self._terms.within_s
        with trio.move_on_after(limit_s):
            try:
                return await awaitable
            except BaseExceptionGroup as group:
                error = first_error(group)
                if isinstance(error, trio.Cancelled):
                    raise
                raise error from group
        raise BreachError(f"{what} within {limit_s:g} s", "it hangs")

    async def cancelled(self, act: Callable[[], Awaitable[R]], trial: Trial, step: int) -> None:
        """Run a use, and cancel it after one of its steps."""
        result: R | None = None
        with trio.CancelScope() as scope:
            trial.watch(scope, step)
            try:
                result = await act()
            except Exception as error:
                wanted = f"a use that is cancelled at step {step} raises nothing else"
                raise BreachError(wanted, repr(first_error(error))) from error
            finally:
                trial.unwatch()
        took_s = trio.current_time() - trial.cancelled_at_s
        if scope.cancelled_caught and took_s > LEAVE_S:
            raise BreachError(
                f"a use cancelled at step {step} ends in {LEAVE_S:g} s", f"{took_s:g} s"
            )
        if result is not None:
            self.compare(result, f"though it swallowed a cancellation at step {step}")
