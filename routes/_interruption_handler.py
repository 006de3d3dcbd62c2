"""Calls the handler of a rule once a run that the rule cut has unwound."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import trio

from ._router_protocol import ChainRouter
from ._run import Run
from ._run_context import CURRENT_RUN
from ._stage_results import ResultKind, kind_of
from ._user_errors import contain
from .logs import get_logger

log = get_logger()

OVERRUN_S = 1.0
"""How many seconds a cancelled handler may still take before nobody waits for it."""


def has_handler(run: Run) -> bool:
    """Return whether the cut of a run has a handler to call."""
    rule = run.rule
    return rule is not None and rule.handler is not None


async def call_handler(
    run: Run,
    router: ChainRouter,
    *,
    failed: Callable[[Run, str, Exception], None],
    abandon: Callable[[Run, str], None],
) -> None:
    """Call the handler of a cut run, in bounded time.

    An error of the handler is reported as a failure of the chain and goes no further.

    Args:
        run: A run for which ``has_handler()`` is true.
        router: The router of the run.
        failed: Called with the run, the rule and the error when the handler fails.
        abandon: Called when the handler does not end in time.
    """
    CURRENT_RUN.set(None)  # what a handler publishes is no output of the cut run
    rule, interruption = run.rule, run.interruption
    assert rule is not None
    assert rule.handler is not None
    assert interruption is not None
    until_s = trio.current_time() + router.handler_s + OVERRUN_S
    router.call_at(run, until_s, partial(abandon, run, "handler"))
    with trio.move_on_after(router.handler_s, shield=True) as scope:
        try:
            describe = router.listeners.describe_interruption
            if describe is not None:
                interruption = await describe(run, interruption)
            result = rule.handler(interruption.cause, interruption)
            if kind_of(result) is ResultKind.AWAITABLE:
                await result
        except BaseException as error:  # noqa: ASYNC103 - reported; the next turn works
            told, rest = contain(error)
            if told is not None:
                failed(run, rule.written, told)
            if rest is not None:
                raise
    if scope.cancelled_caught:
        log.warning(
            "handler_too_slow", route=run.written, rule=rule.written, limit_s=router.handler_s
        )
