"""The order in which tasks run that are ready at once: drawn by a seed, so that it can be repeated.

trio shuffles such tasks, since no program may rely on their order; so a test that does fails now
and then.  It has no public way to repeat an order: what ``repeatable()`` uses is the switch that
trio has for Hypothesis (python-trio/trio#890), and this is its only user beside that.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio.testing
from trio._core import _run as _scheduler

from bargein.routes import start_alarm_clock

from ._tracebacks import repeatable

used: list[int] = []
"""The seeds of the calls of one test, in their order; for the plug-in for pytest."""

_open = 0
"""How many calls with an order of their own are open: the order is one for the whole run."""


@asynccontextmanager
async def seeded(seed: int | None) -> AsyncIterator[int | None]:
    """Have tasks that are ready at once run in an order that the seed decides.

    The plug-in for pytest tells the seed below a test that fails.

    Args:
        seed: From 0; ``None`` draws one, or leaves the order to Hypothesis in a test of its, or to
            the call in which this one is opened.

    Yields:
        The seed; ``None`` if something else decides the order.

    Raises:
        ValueError: It is no such number, or another call has decided the order.
    """
    global _open
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ValueError(f"seed= is a whole number from 0, or None, not {seed!r}")
    if seed is not None and _open:
        raise ValueError(
            f"seed={seed}: another call is open, and the order of tasks is one for both; "
            "give the seed to the call that is opened first"
        )
    if _open or (seed is None and _is_hypothesis_at_work()):
        yield None
        return
    if seed is None:
        seed = _scheduler._r.getrandbits(32)
    used.append(seed)
    _open += 1
    try:
        start_alarm_clock()  # the first call of a run begins its task; so it is there for each
        # Whoever is in the first batch takes part in the shuffle: let it be this task alone.
        await trio.testing.wait_all_tasks_blocked()
        with repeatable(seed):
            yield seed
    finally:
        _open -= 1


def said(seeds: list[int]) -> str:
    """Return what to write so as to have the order of tasks again."""
    if len(seeds) == 1:
        return f"The order of tasks was that of seed={seeds[0]}, which repeats it."
    each = ", ".join(f"seed={seed}" for seed in seeds)
    return f"The order of tasks in the calls of this test was that of {each}, which repeat it."


def _is_hypothesis_at_work() -> bool:
    hypothesis = sys.modules.get("hypothesis")
    return hypothesis is not None and bool(hypothesis.currently_in_test_context())
