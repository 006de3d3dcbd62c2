"""Runs plain functions as tools in the worker process of their call.

All such tools of a call with the same ``inherit=`` share one process and run one after the other,
so they share its global variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import trio

from bargein.nodes.processes._termination import DEFAULT_LADDER, SPARE_S

from ._schema import as_text
from .processes import PythonWorker, WorkerCall, WorkerDiedError

if TYPE_CHECKING:
    from bargein.bridge import Call

    from ._tool_context import ToolContext

STATE_LOST = "(The worker process was replaced before this call: what it had in memory is lost.)"

UNWIND_S = DEFAULT_LADDER.bound_s + SPARE_S
"""How long an interrupted function and the end of its process may take, in seconds."""

_workers: WeakKeyDictionary[Call, dict[tuple[str, ...], PythonWorker]] = WeakKeyDictionary()


async def run_in_worker(
    context: ToolContext,
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    *,
    has_effects: bool = True,
    inherit: tuple[str, ...] = (),
) -> str:
    """Call a plain function in the worker process of its call.

    Cancelling interrupts the function; its process is ended only if the function does not stop.

    Args:
        context: The context of the running tool.
        function: A plain function that a process can import by name.
        arguments: Its arguments.
        has_effects: Whether its effect is unknown if its process dies.
        inherit: The environment variables of ours that the function reads; those with other ones
            have another process.

    Returns:
        What the function returned, as text, followed by a note if the process is a new one.
    """
    workers = _workers.setdefault(context.call, {})
    worker = workers.get(inherit)
    if worker is None:
        name = f"tools of {context.call.call_id}"
        worker = workers[inherit] = PythonWorker(name, inherit=inherit)
        context.call.nursery.start_soon(_keep_open, worker, context.call.ended)
    call = WorkerCall()
    try:
        await worker.opened.wait()
        value = await worker.call(
            function,
            arguments,
            call=call,
            on_output=context.output,
            is_forced=lambda: context.token.is_forced,
        )
    except trio.Cancelled:
        if not call.is_begun:
            context.conclude("", "not_started")
        raise
    except WorkerDiedError as error:
        if has_effects:
            context.conclude(str(error), "effect_unknown", error=True)
        raise
    text = as_text(value)
    return f"{text}\n{STATE_LOST}" if call.state_lost else text


async def _keep_open(worker: PythonWorker, ended: trio.Event) -> None:
    """Keep a worker open until the call has ended and its last function was interrupted."""
    with trio.CancelScope(shield=True):
        async with worker.open():
            await ended.wait()
            with trio.move_on_after(UNWIND_S):
                await worker.until_unused()
