"""Runs plain functions as tools in threads."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import trio
from trio.lowlevel import RunVar

from bargein.routes.logs import get_logger

from ._schema import as_text

if TYPE_CHECKING:
    from ._tool_context import ToolContext

log = get_logger()

THREADS = 64
"""How many tools may run in threads at once, over all calls of the process. Trio's own limit of 40
stays free for short work."""

THREAD_S = 1.0
"""How long a stopped thread may take until its result is dropped, in seconds; the same as for an
interrupted run of a chain."""

_limiter: RunVar[trio.CapacityLimiter] = RunVar("bargein_tool_threads")


async def run_in_thread(
    context: ToolContext, function: Callable[..., Any], arguments: Mapping[str, Any]
) -> str:
    """Call a plain function in a thread.

    Cancelling cannot stop the thread; it sets the tool's token, which the function can poll. If the
    function ends soon, its result still counts; otherwise the thread is abandoned, and its end is
    logged.

    Returns:
        What the function returned, as text.
    """
    thread = _Thread(context, function, arguments)
    try:
        await trio.to_thread.run_sync(thread.run, abandon_on_cancel=True, limiter=_threads())
    except trio.Cancelled:
        if thread.withdraw():
            context.conclude("", "not_started")
            raise
        with trio.move_on_at(thread.left_at_s, shield=True):
            await thread.ended.wait()
        thread.leave()
        raise
    assert thread.text is not None
    return thread.text


class _Thread:
    """A function in a thread, and its outcome, even when nobody waits for it any more."""

    def __init__(
        self, context: ToolContext, function: Callable[..., Any], arguments: Mapping[str, Any]
    ) -> None:
        self._context = context
        self._function = function
        self._arguments = arguments
        self._trio_token = trio.lowlevel.current_trio_token()
        self.ended = trio.Event()
        self._lock = threading.Lock()
        self._has_started = False
        self._is_withdrawn = False
        self._is_left = False
        self.text: str | None = None
        """The function's result as text; ``None`` if it has not returned, or raised."""

    def run(self) -> None:
        """Call the function unless it was withdrawn; runs in the thread."""
        with self._lock:
            if self._is_withdrawn:
                return
            self._has_started = True
        try:
            self.text = as_text(self._function(**self._arguments))
        finally:
            with contextlib.suppress(trio.RunFinishedError):
                self._trio_token.run_sync_soon(self._report_end)

    def withdraw(self) -> bool:
        """Prevent the function from starting; return False if it has already started."""
        with self._lock:
            self._is_withdrawn = not self._has_started
            return self._is_withdrawn

    def _report_end(self) -> None:
        self.ended.set()
        if self._is_left:
            log.info("abandoned_thread_ended", tool=self._context.name, id=self._context.id)

    @property
    def left_at_s(self) -> float:
        """How long to wait for a thread that was told to stop now, in seconds of trio's clock."""
        return max(self._context.commit_until_s, trio.current_time()) + THREAD_S

    def leave(self) -> None:
        """Use the result if the function has ended; otherwise abandon the thread."""
        if not self.ended.is_set():
            self._is_left = True
            log.warning("tool_thread_abandoned", tool=self._context.name, id=self._context.id)
        elif self.text is not None:
            self._context.conclude(self.text, "completed")


def _threads() -> trio.CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(THREADS)
        _limiter.set(limiter)
        return limiter
