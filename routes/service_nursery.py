"""A nursery for tasks that serve a block, and end with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio


@asynccontextmanager
async def open_service_nursery(reason: str) -> AsyncIterator[trio.Nursery]:
    """Open a nursery whose tasks are cancelled when the block is left.

    What the block raises arrives as it is, unless a task has raised, too: then both come in an
    exception group, as what a task raises always does.  That tasks were cancelled from outside is
    no error of theirs.

    Args:
        reason: Why the tasks end, for people who read `trio.Cancelled`.
    """
    raised: BaseException | None = None
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except BaseException as error:  # noqa: ASYNC103 - raised below
                if _has_cancellation(error):
                    raise  # it is for the scope that is cancelled, which may be the nursery's
                raised = error
            finally:
                nursery.cancel_scope.cancel(reason=reason)
    except BaseExceptionGroup as group:
        if raised is None:
            raise
        failed = group.split(trio.Cancelled)[1]
        if failed is not None:
            raise BaseExceptionGroup(failed.message, [raised, *failed.exceptions]) from None
    if raised is not None:
        raise raised


def _has_cancellation(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(trio.Cancelled) is not None
    return isinstance(error, trio.Cancelled)
