"""A bounded pool of worker processes around one engine, which all calls share.

Rules:
1. One task owns one process and takes jobs from a channel, so there is nothing to lock.
2. A cancelled job is dropped at once for its caller.  Its worker then drains what is left of it,
   and is killed only if the job does not come to an end in time.
3. A worker whose piece is late counts no more: once a job waits, another process starts in its
   place, so one job that hangs holds up nobody else.  When the late one delivers after all, one too
   many is there, and the next to be idle ends.  There are never more than twice as many processes
   as the pool's size.
4. A worker that is silent for too long, dies, or writes garbage is killed and replaced.  Its job
   may be done again by another, from the piece on at which it was lost.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from ._capture import OnOutput
from ._errors import PoolClosedError, ProcessLostError
from ._settings import PoolSettings
from ._termination import SPARE_S, never
from ._worker import Job, Worker

_PIECES_AHEAD = 4


class Pool:
    """Worker processes of one engine; open it, then call `run`."""

    def __init__(self, settings: PoolSettings) -> None:
        """Keep the settings; processes are started by `open`."""
        self._settings = settings
        self._jobs: trio.MemorySendChannel[Job] | None = None
        self._workers: list[Worker] = []
        self._start_worker: Callable[[], None]
        self.about: dict[str, Any] = {}
        """What the engine says about itself; empty before the pool was open."""

    @property
    def is_open(self) -> bool:
        """Whether it takes jobs."""
        return self._jobs is not None

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes that run."""
        return [worker.pid for worker in self._workers if worker.pid is not None]

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Start the workers and wait until each has loaded its engine.

        Leaving the block ends them; none is left after two seconds.

        Raises:
            EngineLoadError: The engine cannot load.
            ProcessLostError: A process died, or was not ready in time.
        """
        failure: Exception | None = None  # raised behind the nursery, so that none wraps it
        jobs, source = trio.open_memory_channel[Job](0)
        with jobs, source:
            async with trio.open_nursery() as nursery:

                def start_worker() -> None:
                    worker = Worker(self._settings, self._has_too_many, self._replace_late)
                    self._workers.append(worker)
                    nursery.start_soon(self._run_worker, worker, source)

                self._start_worker = start_worker
                try:
                    await self._start_all()
                    self._jobs = jobs
                    yield
                except Exception as error:  # noqa: BLE001
                    failure = error
                finally:
                    self._jobs = None
                    nursery.cancel_scope.cancel(reason="the pool was closed")
        if failure is not None:
            raise failure

    async def _start_all(self) -> None:
        for _ in range(self._settings.size):
            self._start_worker()
        for worker in self._workers:
            await worker.ready.wait()
        for worker in self._workers:
            if worker.failure is not None:
                raise worker.failure
        self.about = self._workers[0].about

    async def run(
        self,
        payload: bytes,
        *,
        silence_s: float = math.inf,
        on_begin: Callable[[int], None] | None = None,
        on_output: OnOutput | None = None,
        is_forced: Callable[[], bool] = never,
    ) -> AsyncGenerator[bytes, None]:
        """Yield the pieces of a job's answer; it waits its turn when all workers are busy.

        Cancelling is safe: the job is dropped, and no piece of it reaches another.  Surround it
        with ``contextlib.aclosing``, so that it is dropped at once and not when the garbage
        collector finds it.

        Args:
            payload: The job.
            silence_s: Limit to the first piece and between two; a worker that exceeds it is killed.
            on_begin: Called when a process gets the job, with the generation of that process.
            on_output: Called with stream and text of what a job that has effects writes.
            is_forced: Asked while it is cancelled; True means that its process is killed at once.

        Raises:
            JobError: The engine refuses the job.
            ProcessLostError: The worker was lost, in the last attempt; what came before is good.
            EngineLoadError: The worker was lost, and the engine cannot be loaded again.
            PoolClosedError: The pool is not open, or was closed.
        """
        given = 0
        for left in reversed(range(self._settings.attempts)):
            sender, pieces = trio.open_memory_channel[bytes](_PIECES_AHEAD)
            job = Job(payload, silence_s, sender, on_begin, on_output, is_forced)
            skipped = given
            try:
                await self._send(job)
                async for piece in pieces:
                    if skipped:
                        skipped -= 1
                        continue
                    given += 1
                    yield piece
            finally:
                job.scope.cancel(reason="job dropped")
                sender.close()
                pieces.close()
                if job.is_begun and self._settings.has_effects:
                    with trio.move_on_after(self._settings.cancel_bound_s + SPARE_S, shield=True):
                        await job.over.wait()
            if job.error is None:
                return
            if not (left and isinstance(job.error, ProcessLostError)):
                raise job.error

    async def _run_worker(self, worker: Worker, jobs: trio.MemoryReceiveChannel[Job]) -> None:
        try:
            await worker.run(jobs)
        finally:
            self._workers.remove(worker)

    def _replace_late(self) -> None:
        """Start a worker beside one that is late, if a job waits for it."""
        if self._jobs is not None and self._jobs.statistics().tasks_waiting_send:
            self._complete()

    def _complete(self) -> None:
        """Start a worker if too few are on duty, which is where one is late."""
        if self._on_duty < self._settings.size and len(self._workers) < 2 * self._settings.size:
            self._start_worker()

    def _has_too_many(self) -> bool:
        return self._on_duty > self._settings.size

    @property
    def _on_duty(self) -> int:
        return sum(not worker.is_late for worker in self._workers)

    async def _send(self, job: Job) -> None:
        if self._jobs is None:
            raise PoolClosedError(f"{self._settings.name} is not open")
        self._complete()
        try:
            await self._jobs.send(job)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise PoolClosedError(f"{self._settings.name} is not open") from None
