"""Worker processes that calls share."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Self

import trio

from ._capture import OnOutput
from ._errors import WorkerError
from ._ladder import DEFAULT_LADDER, Ladder, never
from ._worker import START_S, CallReport, PythonWorker


class WorkerPool:
    """A bounded number of workers; each is started when all that run are busy."""

    def __init__(
        self,
        size: int = 2,
        *,
        name: str = "worker",
        ladder: Ladder = DEFAULT_LADDER,
        start_s: float = START_S,
    ) -> None:
        """Keep the settings; no process is started.

        Args:
            size: How many functions run at once, at least 1; more wait their turn.
            name: What the workers are called in logs and errors, with a number.
            ladder: As for `PythonWorker`.
            start_s: As for `PythonWorker`.
        """
        if size < 1:
            raise ValueError(f"WorkerPool(size={size!r}): give at least 1")
        self._places = trio.Semaphore(size)
        self._workers = [
            PythonWorker(f"{name}-{number}", ladder=ladder, start_s=start_s)
            for number in range(1, size + 1)
        ]
        self._idle: list[PythonWorker] = []
        self._is_open = False

    @property
    def workers(self) -> tuple[PythonWorker, ...]:
        """All of them, also those that have no process yet."""
        return tuple(self._workers)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Let calls be made within the block; leaving it ends all processes.

        Raises:
            WorkerError: It is open already.
        """
        if self._is_open:
            raise WorkerError("the pool is open already")
        async with AsyncExitStack() as stack:
            for worker in self._workers:
                await stack.enter_async_context(worker.open())
            # The last one is taken first, and put back on top: one that runs goes before one
            # that would have to start.
            self._idle = self._workers[::-1]
            self._is_open = True
            try:
                yield self
            finally:
                self._is_open = False

    async def serve(self, *, task_status: trio.TaskStatus[Self] = trio.TASK_STATUS_IGNORED) -> None:
        """Keep the pool open until cancelled; for ``await nursery.start(pool.serve)``."""
        async with self.open():
            task_status.started(self)
            await trio.sleep_forever()

    async def call(
        self,
        function: Callable[..., Any] | str,
        kwargs: Mapping[str, Any] | None = None,
        *,
        call_id: str = "",
        on_output: OnOutput | None = None,
        is_forced: Callable[[], bool] = never,
    ) -> Any:
        """Call a function in a worker and return its value; see `PythonWorker.run`."""
        report = await self.run(
            function, kwargs, call_id=call_id, on_output=on_output, is_forced=is_forced
        )
        return report.value

    async def run(
        self,
        function: Callable[..., Any] | str,
        kwargs: Mapping[str, Any] | None = None,
        *,
        call_id: str = "",
        on_output: OnOutput | None = None,
        is_forced: Callable[[], bool] = never,
    ) -> CallReport:
        """Call a function in a worker, when one is free.

        As `PythonWorker.run`; cancelling while it waits for a worker starts and stops nothing.

        Raises:
            WorkerError: The pool is not open.
        """
        if not self._is_open:
            raise WorkerError("the pool is not open: use `async with pool.open():`")
        async with self._places:
            worker = self._idle.pop()
            try:
                return await worker.run(
                    function, kwargs, call_id=call_id, on_output=on_output, is_forced=is_forced
                )
            finally:
                self._idle.append(worker)
