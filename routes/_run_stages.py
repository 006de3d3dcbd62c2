"""Executes the stages of a run that wait, in the run's own task."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import aclosing
from typing import Any

import trio

from ._generator_cancel_scope import closing, explained
from ._run import Run
from ._stage_pipeline import NOTHING, Pending, Pipeline, StageError, SyncStages
from ._stage_results import spread
from ._user_errors import as_error

NOT_YET = object()
"""Stands for a value that the sync stages have not produced yet."""


def carry_out(
    pipeline: Pipeline, run: Run, value: Any, pending: Pending | None
) -> Coroutine[Any, Any, None]:
    """Execute the async stages of a run to their end.

    Each value passes through every coroutine on the way, so this is not a coroutine itself.

    Args:
        pipeline: The stages of its chain.
        run: The run; await the result in its task and scope.
        value: The result of the sync stages before them; ``NOT_YET`` if these have not finished.
        pending: What a sync stage returned that must be awaited or iterated first; ``None`` for
            nothing.

    Raises:
        StageError: A stage failed.
    """
    flow = _flow_in_nursery if pipeline.needs_nursery else _flow
    return flow(pipeline, run, value, pending)


async def _flow_in_nursery(
    pipeline: Pipeline, run: Run, value: Any, pending: Pending | None
) -> None:
    async with trio.open_nursery() as nursery:
        run.waits.keep_tasks_in(nursery)
        await _flow(pipeline, run, value, pending)
        nursery.cancel_scope.cancel(reason="the run has ended")


async def _flow(pipeline: Pipeline, run: Run, value: Any, pending: Pending | None) -> None:
    """Pass each value of the head through the tail, at the pace of the sinks."""
    if pending is not None:
        await _finish_stage(pipeline, run, pipeline.lead, pending)
        return
    tail, waits = pipeline.tail, run.waits
    async with _opened(pipeline, run, run.trigger if value is NOT_YET else value) as items:
        while True:
            try:
                value = await anext(items)
            except StopAsyncIteration:
                return
            except StageError:
                raise
            except BaseException as caught:  # noqa: ASYNC103, BLE001 - see as_error()
                error = as_error(caught)
                raise StageError(pipeline.head_name, error) from error  # noqa: ASYNC104 - see as_error()
            if waits.paused_until is not None:
                await waits.while_paused()
            if run.is_cut or run.is_stopping:
                return
            if value is not None:
                value = tail.push(value, run)
                if type(value) is Pending:
                    await _finish_stage(pipeline, run, tail, value)
            value = None  # it may be audio, which others may be done with before the next one comes
            await waits.for_others()


def _opened(pipeline: Pipeline, run: Run, value: Any) -> closing:
    try:
        return closing(pipeline.open(run, value))
    except BaseException as caught:  # noqa: ASYNC103, BLE001 - see as_error()
        error = as_error(caught)
        raise StageError(pipeline.head_name, error) from error  # noqa: ASYNC104 - see as_error()


async def _finish_stage(pipeline: Pipeline, run: Run, steps: SyncStages, pending: Pending) -> None:
    """Await or iterate the result of a sync stage, and pass it to the stages that follow."""
    try:
        async with aclosing(spread(pending.value, lists=False)) as items:
            async for item in items:
                await run.waits.while_paused()
                if run.is_cut or run.is_stopping:
                    return
                if item is not None:
                    item = steps.push(item, run, pending.next_step)
                    await _after_lead(pipeline, run, steps, item)
                await run.waits.for_others()
    except StageError:
        raise
    except BaseException as caught:  # noqa: ASYNC103, BLE001 - see as_error()
        error = as_error(caught)
        raise StageError(pending.stage, error) from error  # noqa: ASYNC104 - see as_error()


async def _after_lead(pipeline: Pipeline, run: Run, steps: SyncStages, result: Any) -> None:
    if type(result) is Pending:
        await _finish_stage(pipeline, run, steps, result)
    elif result is not NOTHING and steps is pipeline.lead and pipeline.head:
        await _flow(pipeline, run, result, None)


def causes(error: Exception | None, stage: str) -> Iterator[tuple[str, Exception]]:
    """Yield each failed stage with its error, unwrapped from nurseries' exception groups.

    Args:
        error: What reached the edge of a run.
        stage: The stage to blame for errors that belong to no stage.
    """
    if isinstance(error, StageError):
        yield from causes(error.error, error.stage)
    elif isinstance(error, ExceptionGroup):
        for one in error.exceptions:
            yield from causes(one, stage)
    elif error is not None:
        yield stage, explained(error)
