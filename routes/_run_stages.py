"""Executes the stages of a run that wait, in the run's own task."""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from contextlib import aclosing
from typing import Any

import trio

from ._generator_cancel_scope import closing, explained
from ._run import Run
from ._stage_pipeline import UNMOVED, Pending, Pipeline, StageError, StageResult
from ._stage_results import spread
from ._user_errors import as_error

NOT_YET = object()
"""Stands for a value that the sync stages have not produced yet."""


def carry_out(
    pipeline: Pipeline, run: Run, value: Any, pending: Pending | None
) -> tuple[Coroutine[Any, Any, None], closing | None]:
    """Return what executes the async stages of a run to their end, and what it iterates, if known.

    Each value passes through every coroutine on the way, so this is not a coroutine itself.

    Args:
        pipeline: The stages of its chain.
        run: The run; this is called in its task and scope.
        value: The result of the sync stages before them; ``NOT_YET`` if these have not finished.
        pending: What a sync stage returned that must be awaited or iterated first; ``None`` for
            nothing.

    Raises:
        StageError: The first stage raised when it was called.
    """
    if pipeline.needs_nursery:
        return _flow_in_nursery(pipeline, run, value, pending), None
    return _flow(pipeline, run, value, pending)


async def _flow_in_nursery(
    pipeline: Pipeline, run: Run, value: Any, pending: Pending | None
) -> None:
    async with trio.open_nursery() as nursery:
        run.keep_tasks_in(nursery)
        await _flow(pipeline, run, value, pending)[0]
        nursery.cancel_scope.cancel(reason="the run has ended")


def _flow(
    pipeline: Pipeline, run: Run, value: Any, pending: Pending | None
) -> tuple[Coroutine[Any, Any, None], closing | None]:
    if pending is not None:
        return _finish_stage(pipeline, run, pipeline.lead, pending), None
    if value is NOT_YET:
        value = run.trigger
    try:
        items = closing(pipeline.open(run, value))
    except BaseException as caught:  # noqa: ASYNC103, BLE001 - see as_error()
        error = as_error(caught)
        raise StageError(pipeline.head_name, error) from error  # noqa: ASYNC104 - see as_error()
    return _drain(pipeline, run, items), items


async def _drain(pipeline: Pipeline, run: Run, items: closing) -> None:
    """Pass each value of the head through the tail, at the pace of the sinks."""
    task = trio.lowlevel.current_task()
    tail = pipeline.tail
    publish = tail.publish if tail.only_publishes else None
    async with items as iterator:
        while True:
            # Trio clears custom_sleep_data whenever it reschedules a task, so if the mark
            # survives, the stages did not wait, and other tasks get their turn here.
            task.custom_sleep_data = UNMOVED
            try:
                value = await anext(iterator)
            except StopAsyncIteration:
                return
            except StageError:
                raise
            except BaseException as caught:  # noqa: ASYNC103, BLE001 - see as_error()
                error = as_error(caught)
                raise StageError(pipeline.head_name, error) from error  # noqa: ASYNC104 - see as_error()
            while run.paused_until is not None and not run.is_cut:
                await run.wait_outside_stages(run.paused_until.wait)
            if run.is_cut or run.is_stopping:
                return
            if value is None:
                pass
            elif publish is not None:  # the usual chain ends with .broadcast()
                try:
                    publish(value, run)
                except BaseException as caught:  # noqa: ASYNC103, BLE001 - see as_error()
                    error = as_error(caught)
                    raise StageError(".broadcast()", error) from error  # noqa: ASYNC104 - see as_error()
            else:
                result = tail.push(value, run)
                if type(result) is Pending:
                    await _finish_stage(pipeline, run, tail, result)
            value = None  # it may be audio, which others may be done with before the next one comes
            if run.blocked_on is not None:
                await run.wait_for_room()
            if task.custom_sleep_data is UNMOVED:
                await run.let_others_run()


async def _finish_stage(pipeline: Pipeline, run: Run, steps: Any, pending: Pending) -> None:
    """Await or iterate the result of a sync stage, and pass it to the stages that follow."""
    try:
        async with aclosing(spread(pending.value, lists=False)) as items:
            async for item in items:
                if not await run.wait_while_paused():
                    return
                result = steps.push(item, run, pending.next_step) if item is not None else None
                await _after_lead(pipeline, run, steps, result)
    except StageError:
        raise
    except BaseException as caught:  # noqa: ASYNC103, BLE001 - see as_error()
        error = as_error(caught)
        raise StageError(pending.stage, error) from error  # noqa: ASYNC104 - see as_error()


async def _after_lead(
    pipeline: Pipeline, run: Run, steps: Any, result: Pending | StageResult | None
) -> None:
    if type(result) is Pending:
        await _finish_stage(pipeline, run, steps, result)
    elif result is not None and steps is pipeline.lead and pipeline.head:
        await _flow(pipeline, run, result.value, None)[0]
    await run.wait_for_room()
    await run.let_others_run()


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
