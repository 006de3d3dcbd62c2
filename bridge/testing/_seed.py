"""Fixes the order of tasks that are ready at once by a seed, so that it can be repeated.

trio shuffles such tasks, because no program may rely on their order; a test that does so fails now
and then.  trio has no public way to repeat an order: ``repeatable()`` uses the switch that trio has
for Hypothesis (python-trio/trio#890).
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio.testing
from trio._core import _run as _scheduler

from bargein.routes import start_timer_task

from ._tracebacks import repeatable

used: list[int] = []
"""The seeds of the calls of one test, in order; for the pytest plug-in."""

_open = 0
"""How many calls that fixed the order are open: there is only one order for the whole run."""


@asynccontextmanager
async def seeded(seed: int | None) -> AsyncIterator[int | None]:
    """Run tasks that are ready at once in an order fixed by a seed.

    The pytest plug-in prints the seed below a failed test.

    Args:
        seed: From 0; ``None`` draws one, or leaves the order to Hypothesis in its tests, or to an
            outer call.

    Yields:
        The seed; ``None`` if something else decides the order.

    Raises:
        ValueError: It is not such a number, or another call has fixed the order.
    """
    global _open
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ValueError(f"seed= is a whole number from 0, or None, not {seed!r}")
    if seed is not None and _open:
        raise ValueError(
            f"seed={seed}: another call is open, and both share one order of tasks; "
            "give the seed to the call that is opened first"
        )
    if _open or (seed is None and _is_hypothesis_at_work()):
        yield None
        return
    if seed is None:
        seed = _scheduler._r.getrandbits(32)  # noqa: SLF001 - trio has no public name for it
    used.append(seed)
    _open += 1
    try:
        start_timer_task()  # otherwise only the first call of a run would start its task
        # Tasks of the first batch are shuffled: let it be only this task.
        await trio.testing.wait_all_tasks_blocked()
        with repeatable(seed):
            yield seed
    finally:
        _open -= 1


def said(seeds: list[int]) -> str:
    """Return a text that says how to repeat the order of tasks."""
    if len(seeds) == 1:
        return f"The order of tasks was that of seed={seeds[0]}, which repeats it."
    each = ", ".join(f"seed={seed}" for seed in seeds)
    return f"The order of tasks in the calls of this test was that of {each}, which repeat it."


def _is_hypothesis_at_work() -> bool:
    hypothesis = sys.modules.get("hypothesis")
    return hypothesis is not None and bool(hypothesis.currently_in_test_context())
