"""A provider that is used again and again: what comes is compared with what came when all was well.

A fault of the vendor's may cost the result, but then the provider says so, by an error of ours and
in time; it may never cost the truth, the next use, or a task.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, Literal, TypeVar

import trio

from bargein.routes import BargeinError

from ..fakes import Fault
from ._check_options import Terms
from ._check_report import Breach
from ._provider_use import Make, P, ProviderUse, R
from ._trial import LEAVE_S, Trial, innermost, run_trial, shown

T = TypeVar("T")

AGAIN_S = 1.0
"""How long after a fault it is used again, in seconds."""

Wanted = Literal["whole", "error", "whole or error", "sane"]
"""What may come of a fault; "sane": anything that makes sense."""


class ProviderTrials(Generic[P, R]):
    """Uses one provider in runs of their own.

    Attributes:
        expected: What comes of a use when all is well; None until that is known.
        steps: How many steps of the scheduler such a use takes.
        tasks: How many tasks there are between two uses.
    """

    def __init__(self, make: Make[P], use: ProviderUse[P, R], terms: Terms) -> None:
        """Keep what is used, and how."""
        self._make = make
        self._use = use
        self._terms = terms
        self.expected: R | None = None
        self.steps = self.tasks = 0

    def learn(self) -> None:
        """Use it twice while all is well, and remember what came.

        Raises:
            Breach: Something else came the second time.
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
        """Open a provider whose vendor has a fault, and do something with it.

        Raises:
            Exception: What `main` raises; a `Breach` if tasks or files are left.
        """

        async def opened(trial: Trial) -> None:
            async with self._make(fault) as provider:
                await main(provider, trial)

        run_trial(opened, virtual=self._terms.virtual)

    def attempt(self, fault: Fault, wanted: Wanted) -> None:
        """Use a provider whose vendor has a fault.

        Args:
            fault: What goes wrong.
            wanted: What may come of it.

        Raises:
            Breach: Something else came of it.
        """
        outcome: R | Exception | None = None

        async def main(provider: P, trial: Trial) -> None:
            nonlocal outcome
            try:
                outcome = await self.used(provider, str(fault))
            except Breach:
                raise
            except Exception as error:  # noqa: BLE001 (judged below)
                outcome = error
                self.judge(innermost(error), fault)
            if fault.times is not None:
                await trio.sleep(AGAIN_S)
                await self.same(provider, f"after {fault}")
            await self.settle(trial, f"after {fault}")

        self.run(fault, main)
        failed = isinstance(outcome, Exception)
        if wanted == "error" and not failed:
            raise Breach(f"an error ({fault})", shown(outcome))
        if wanted == "whole" and failed:
            raise Breach(f"{shown(self.expected)} ({fault})", repr(outcome))
        if wanted in ("whole", "whole or error") and not failed:
            assert outcome is not None
            self.compare(outcome, f"({fault})")  # type: ignore[arg-type]  # no error

    def judge(self, error: BaseException, fault: Fault) -> None:
        """Raise a `Breach` for an error that is none of ours."""
        if isinstance(error, Breach):
            raise error
        if not isinstance(error, BargeinError):
            raise Breach(f"an error that is a BargeinError ({fault})", repr(error)) from error

    async def open_and_use(self) -> R:
        """Open a provider whose vendor is well, use it once, and close it."""
        async with self._make(None) as provider:
            return await self.used(provider)

    async def used(self, provider: P, why: str = "all is well") -> R:
        """Use it once, and return what came in time."""
        return await self.bounded(self._use.use(provider), f"a result or an error ({why})")

    async def same(self, provider: P, when: str) -> None:
        """Use it once, and see that the same comes as when all is well."""
        try:
            came = await self.used(provider, when)
        except BargeinError as error:
            raise Breach(f"{shown(self.expected)} {when}", repr(error)) from error
        self.compare(came, when)

    def compare(self, came: R, when: str) -> None:
        """Raise a `Breach` if something else came than when all is well."""
        assert self.expected is not None
        if wrong := self._use.difference(self.expected, came):
            raise Breach(f"{shown(self.expected)} {when}", f"{shown(came)}: {wrong}")

    async def settle(self, trial: Trial, when: str) -> None:
        """Wait until there are no more tasks than between two uses."""
        await trial.settle(self.tasks, when)

    async def bounded(self, awaitable: Awaitable[T], what: str) -> T:
        """Wait for something, and raise a `Breach` if it hangs."""
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

    async def cancelled(self, act: Callable[[], Awaitable[R]], trial: Trial, step: int) -> None:
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
            self.compare(result, f"though it swallowed a cancellation at step {step}")
