"""Settling: a verb has settled once all the work that it stopped is over."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from bargein.routes import Run
from bargein.routes.logs import get_logger

from ..context._running_tools import Work
from ..context._verb_receipt import Receipt

if TYPE_CHECKING:
    from ..context._call_context import CallContext

log = get_logger()

LAST_S = 10.0
"""How many seconds after a tool's last deadline a verb counts as settled anyway."""


async def stopped_work_ended(receipt: Receipt, runs: list[Run], works: list[Work]) -> None:
    """Wait until everything that a verb stopped is over, at most until its last deadline.

    It does not wait for tools that moved to the background.  Cancelling this is safe.

    Args:
        receipt: The verb's.
        runs: The runs that it cut.
        works: The tools that it interrupted, or that a pause lets finish.
    """
    for run in runs:
        await run.finished()
    ends_s = max(
        (still.deadline_s for still in receipt.still_running if still.deadline_s < math.inf),
        default=trio.current_time(),
    )
    limit_s = math.inf if receipt.verb == "pause" else ends_s + LAST_S
    with trio.move_on_at(limit_s) as scope:
        moved = {still.id for still in receipt.still_running if still.deadline_s == math.inf}
        for work in works:
            if work.id not in moved:
                await work.done.wait()
    if scope.cancelled_caught:
        log.warning("verb_not_settled", verb=receipt.verb, waited_s=LAST_S)


async def until(condition: Callable[[], bool], context: CallContext) -> None:
    """Wait until a condition is true, which is tested after each change of the call.

    Cancelling this is safe.
    """
    met = trio.Event()

    def test() -> None:
        if condition():
            met.set()

    test()
    context.observe_changes(test)
    try:
        await met.wait()
    finally:
        context.forget_changes(test)


async def settle_with(weaker: Receipt, stronger: Receipt) -> None:
    """Settle the receipt of a verb with that of the stronger verb that took over its work."""
    await stronger.settled
    weaker.settle()
