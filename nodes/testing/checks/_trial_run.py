"""Runs a provider in its own run of trio: counts steps, watches tasks, and ends it in time.

A cancellation can come only between two steps of trio's scheduler. So cancelling after each step of
a run means cancelling at each of its awaits.
"""

from __future__ import annotations

import math
import os
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import structlog.testing
import trio
import trio.testing

from bargein.routes.error_containment import first_error

from ._check_report import BreachError

T = TypeVar("T")

MOST_STEPS = 2_000_000
"""More steps than this mean an endless loop."""

LEAVE_S = 15.0
"""How long all tasks of a provider may take to end, in seconds."""

CHECK_S = 0.05


class Trial(trio.abc.Instrument):
    """Counts the steps of a run and tracks its tasks."""

    def __init__(self) -> None:
        self.steps = 0
        """How many steps have run since `watch`."""
        self.cancelled_at_s = math.inf
        self._total = 0
        self._alive: set[trio.lowlevel.Task] = set()
        self._whole: trio.CancelScope | None = None
        self._scope: trio.CancelScope | None = None
        self._cancel_after = math.inf

    # --- for the checks -------------------------------------------------------------------------

    def watch(self, scope: trio.CancelScope, cancel_after: float = math.inf) -> None:
        """Start counting, and cancel a scope after so many steps."""
        self.steps, self._scope, self._cancel_after = 0, scope, cancel_after

    def unwatch(self) -> None:
        self._scope = None

    @property
    def tasks(self) -> int:
        """How many tasks exist."""
        return len(self._alive)

    async def settle(self, tasks: int, when: str) -> None:
        """Wait until no more than the given number of tasks is left.

        Raises:
            BreachError: There are more.
        """
        with trio.move_on_after(LEAVE_S):
            while self.tasks > tasks:  # noqa: ASYNC110 (trio does not report the end of a task)
                await trio.sleep(CHECK_S)
            return
        names = sorted(task.name for task in self._alive)
        raise BreachError(
            f"{tasks} tasks {when}", f"{self.tasks}, {LEAVE_S:g} s later: {', '.join(names)}"
        )

    # --- for trio -------------------------------------------------------------------------------

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        self._alive.add(task)

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        self._alive.discard(task)

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        """Count a step, and cancel after it if that is due."""
        self._total += 1
        if self._total > MOST_STEPS and self._whole is not None:
            self._whole.cancel(reason="steps without end")
        if self._scope is None:
            return
        self.steps += 1
        if self.steps >= self._cancel_after:
            scope, self._scope = self._scope, None
            self.cancelled_at_s = trio.current_time()
            scope.cancel(reason="a check cancels behind each step")

    # --- the run --------------------------------------------------------------------------------

    async def run(self, main: Callable[[], Awaitable[T]]) -> T:
        """Run `main`, and check that no task is left."""
        before = self.tasks
        with trio.CancelScope() as self._whole:
            result = await main()
            await self.settle(before, "once it is closed")
            return result
        raise BreachError(f"at most {MOST_STEPS} steps", "steps without end")


def run_trial(main: Callable[[Trial], Awaitable[T]], *, virtual: bool) -> T:
    """Run something in its own run of trio.

    Args:
        main: Called with the trial.
        virtual: Whether time is virtual.

    Returns:
        What `main` returns.

    Raises:
        BreachError: It left tasks or open files.
        Exception: What `main` raises, without exception groups.
    """
    trial = Trial()
    clock = trio.testing.MockClock(autojump_threshold=0) if virtual else None
    files = open_files()

    async def whole() -> T:
        return await trial.run(lambda: main(trial))

    with structlog.testing.capture_logs():
        try:
            result = trio.run(whole, clock=clock, instruments=[trial])
        except BaseExceptionGroup as group:
            raise first_error(group) from group
    left = open_files() - files
    if left > 0:
        raise BreachError("no open file or socket once it is closed", f"{left} more than before")
    return result


def open_files() -> int:
    """Return how many files and sockets are open; 0 if that is unknown."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0


def spread(steps: int, points: int | None) -> list[int]:
    """Return at most `points` numbers from 1 to `steps`, evenly spread, first and last included."""
    if points is None or steps <= points:
        return list(range(1, steps + 1))
    return sorted({1 + round(n * (steps - 1) / max(1, points - 1)) for n in range(points)})


def shown(value: Any) -> str:
    """Return the ``repr`` of a value, shortened."""
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:300]}…"
