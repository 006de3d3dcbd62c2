"""Plain functions as tools, in the worker process of their call.

All such tools of a call share one process, one after the other, so that what one keeps in its
variables another finds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import trio

from bargein.nodes.processes import DEFAULT_LADDER, SPARE_S

from ._schema import as_text

if TYPE_CHECKING:
    from bargein.bridge import Call

    from ._tool_context import ToolContext

STATE_LOST = "(The worker process was replaced before this call: what it had in memory is lost.)"

UNWIND_S = DEFAULT_LADDER.bound_s + SPARE_S
"""How long an interrupted function may take until its process was ended."""

_workers: WeakKeyDictionary[Call, CallWorker] = WeakKeyDictionary()


async def run_in_worker(
    context: ToolContext,
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    *,
    has_effects: bool = True,
) -> str:
    """Call a plain function in the worker process of its call.

    Cancelling this interrupts the function, and the process only if it does not obey.

    Args:
        context: The tool that runs.
        function: A plain function that a process can import by its name.
        arguments: Its arguments.
        has_effects: Whether nobody knows what it has done if its process dies.

    Returns:
        What the function returned, as text; the news that the process is a new one stands behind.
    """
    from ._processes import WorkerDiedError

    worker = _workers.get(context.call)
    if worker is None:
        call = context.call
        worker = _workers[call] = CallWorker(call.call_id, call.nursery, call.ended)
    try:
        return await worker.call(context, function, arguments)
    except WorkerDiedError as error:
        if has_effects:
            context.conclude(str(error), "effect_unknown", error=True)
        raise


class CallWorker:
    """The worker process of a call; started by its first use, ended with the call."""

    def __init__(self, call_id: str, nursery: trio.Nursery, ended: trio.Event) -> None:
        """Start it in a task.

        Args:
            call_id: Names the call in logs.
            nursery: Owns the task.
            ended: Set once the call is over.
        """
        from ._processes import PythonWorker

        self._worker = PythonWorker(f"tools of {call_id}")
        self._opened = trio.Event()
        self._users = 0
        self._left = trio.Event()
        nursery.start_soon(self._keep_open, ended, name="worker of tools")

    async def call(
        self, context: ToolContext, function: Callable[..., Any], arguments: Mapping[str, Any]
    ) -> str:
        """Call a function when those that were called before are done."""
        from ._processes import WorkerCall

        self._users += 1
        called = WorkerCall()
        try:
            await self._opened.wait()
            value = await self._worker.call(
                function,
                arguments,
                call=called,
                on_output=context.output,
                is_forced=lambda: context.token.is_forced,
            )
        except trio.Cancelled:
            if not called.is_begun:
                context.conclude("", "not_started")
            raise
        finally:
            self._users -= 1
            self._left.set()
        text = as_text(value)
        return f"{text}\n{STATE_LOST}" if called.state_lost else text

    async def _keep_open(self, ended: trio.Event) -> None:
        """Keep the worker until the call has ended and its last function was interrupted."""
        with trio.CancelScope(shield=True):
            async with self._worker.open():
                self._opened.set()
                await ended.wait()
                with trio.move_on_after(UNWIND_S):
                    while self._users:
                        self._left = trio.Event()
                        await self._left.wait()
