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

import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
import trio

from ._errors import ChildError, EngineLoadError, JobError, PoolClosedError, ProcessLostError
from ._ladder import Ladder
from ._process import Process, start_process, worker_command

_log = structlog.get_logger()
_LADDER = Ladder(int_s=0, term_s=0, kill_s=1.0)
"""A worker keeps nothing that a gentler end would save, and one that is stopped hears SIGKILL
alone."""
_CLOSE_S = 0.5
_PIECES_AHEAD = 4


@dataclass(frozen=True, slots=True)
class PoolSettings:
    """How the workers of one engine are run."""

    name: str
    """What the engine is called in logs and errors."""
    engine: Path
    """Python file whose ``load(settings)`` returns the engine; it runs in the workers only."""
    settings: Mapping[str, Any]
    """Handed to ``load``, as JSON."""
    size: int = 1
    """Number of processes: that many jobs are done at once, more wait their turn."""
    start_s: float = 60.0
    """A worker that is not ready by then is killed."""
    cancel_s: float = 3.0
    """A worker that is still busy with a cancelled job by then is killed and replaced."""
    late_s: float | None = None
    """A worker that gives no piece for so long is late: another starts beside it if a job waits.
    ``None`` starts none, where a second process is too dear."""
    ping_s: float | None = None
    """A worker that gives no piece for so long is asked whether it is there, and is lost if it does
    not say so within that time again.  It tells one that is stopped, or whose native code keeps the
    interpreter, from one that is at work.  ``None`` asks nothing."""
    attempts: int = 1
    """How often a job is begun whose worker is lost.  2 is for engines that cut the same job into
    the same pieces each time."""
    niceness: int = 0
    """How far the workers stand back where processors are few, 0 to 19."""
    warm: bytes | None = None
    """A job that each worker does before it takes others; its pieces are dropped."""
    env: Mapping[str, str] | None = None
    """The workers' whole environment; ``None`` is ours."""


@dataclass(slots=True, eq=False)
class _Job:
    """One job on its way through the pool."""

    payload: bytes
    silence_s: float
    pieces: trio.MemorySendChannel[bytes]
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    error: ChildError | None = field(
        default_factory=lambda: PoolClosedError("the pool was closed in the middle of a job")
    )
    """Why the pieces ended early; None once the engine said that they are complete."""


class Pool:
    """Worker processes of one engine; open it, then call `run`."""

    def __init__(self, settings: PoolSettings) -> None:
        """Keep the settings; processes are started by `open`."""
        self._settings = settings
        self._jobs: trio.MemorySendChannel[_Job] | None = None
        self._source: trio.MemoryReceiveChannel[_Job] | None = None
        self._nursery: trio.Nursery | None = None
        self._workers: list[_Worker] = []
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
        jobs, self._source = trio.open_memory_channel[_Job](0)
        failure: ChildError | None = None
        with jobs, self._source:
            async with trio.open_nursery() as self._nursery:
                workers = [self.add_worker() for _ in range(self._settings.size)]
                for worker in workers:
                    await worker.ready.wait()
                failure = next((worker.failure for worker in workers if worker.failure), None)
                if failure is None:
                    self.about = workers[0].about
                    self._jobs = jobs
                    try:
                        yield
                    finally:
                        self._jobs = None
                        self._nursery.cancel_scope.cancel(reason="the pool was closed")
                self._nursery.cancel_scope.cancel(reason="a worker failed to start")
        if failure is not None:  # raised out here, so that no nursery wraps it
            raise failure

    async def run(self, payload: bytes, *, silence_s: float) -> AsyncGenerator[bytes, None]:
        """Yield the pieces of a job's answer; it waits its turn when all workers are busy.

        Cancelling is safe: the job is dropped, and no piece of it reaches another.  Surround it
        with ``contextlib.aclosing``, so that it is dropped at once and not when the garbage
        collector finds it.

        Args:
            payload: The job.
            silence_s: Limit to the first piece and between two; a worker that exceeds it is killed.

        Raises:
            JobError: The engine refuses the job.
            ProcessLostError: The worker was lost, in the last attempt; what came before is good.
            EngineLoadError: The worker was lost, and the engine cannot be loaded again.
            PoolClosedError: The pool is not open, or was closed.
        """
        given = 0
        for left in reversed(range(self._settings.attempts)):
            sender, pieces = trio.open_memory_channel[bytes](_PIECES_AHEAD)
            job = _Job(payload, silence_s, sender)
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
            if job.error is None:
                return
            if not (left and isinstance(job.error, ProcessLostError)):
                raise job.error

    def add_worker(self) -> _Worker:
        """Start one more worker."""
        assert self._nursery is not None
        assert self._source is not None
        worker = _Worker(self, self._settings)
        self._workers.append(worker)
        self._nursery.start_soon(worker.run, self._source, name=f"worker of {self._settings.name}")
        return worker

    def remove_worker(self, worker: _Worker) -> None:
        """Forget a worker that has ended."""
        self._workers.remove(worker)

    def replace_late(self) -> None:
        """Start a worker beside one that is late, if a job waits for it."""
        if self._jobs is not None and self._jobs.statistics().tasks_waiting_send:
            self._complete()

    def _complete(self) -> None:
        """Start a worker if too few are on duty, which is where one is late."""
        if self._on_duty < self._settings.size and len(self._workers) < 2 * self._settings.size:
            self.add_worker()

    @property
    def has_too_many(self) -> bool:
        """Whether a worker that is idle, or without a process, should end."""
        return self._on_duty > self._settings.size

    @property
    def _on_duty(self) -> int:
        return sum(not worker.is_late for worker in self._workers)

    async def _send(self, job: _Job) -> None:
        if self._jobs is None:
            raise PoolClosedError(f"{self._settings.name} is not open")
        self._complete()
        try:
            await self._jobs.send(job)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise PoolClosedError(f"{self._settings.name} is not open") from None


class _Worker:
    """One process at a time, and the task that owns it."""

    def __init__(self, pool: Pool, settings: PoolSettings) -> None:
        self._pool = pool
        self._settings = settings
        self._process: Process | None = None
        self._number = 0
        self._generation = 0
        self.is_late = False
        """Whether a piece of it is overdue."""
        self.about: dict[str, Any] = {}
        self.ready = trio.Event()
        """Set once the engine is loaded, or could not be (see `failure`)."""
        self.failure: ChildError | None = None
        """Why it could not start, or None while it works."""

    @property
    def pid(self) -> int | None:
        """The number of its process, None while there is none."""
        return None if self._process is None else self._process.pid

    async def run(self, jobs: trio.MemoryReceiveChannel[_Job]) -> None:
        """Do jobs until cancelled, or not needed any more; with no process at the end."""
        async with trio.open_nursery() as nursery:
            try:
                while not self._pool.has_too_many:
                    if self._process is None:  # at once, so that the next job need not wait
                        await self._try_start(nursery)
                    self.ready.set()
                    job = await jobs.receive()
                    with job.pieces:
                        if self._process is None or not self._process.is_alive:
                            await self._try_start(nursery)
                        await self._serve(job)
                    self.is_late = False
            except trio.EndOfChannel:
                pass
            finally:
                self._pool.remove_worker(self)
                with trio.move_on_after(_CLOSE_S + _LADDER.bound_s, shield=True):
                    await self._stop(_CLOSE_S)
                nursery.cancel_scope.cancel(reason="worker ended")

    async def _try_start(self, nursery: trio.Nursery) -> None:
        await self._stop()
        try:
            await self._start(nursery)
            self.failure = None
        except ChildError as error:
            self.failure = error
            await self._stop()
            _log.warning("worker_failed", engine=self._settings.name, error=str(error))

    async def _start(self, nursery: trio.Nursery) -> None:
        settings = self._settings
        self._generation += 1
        self._number = 0
        command = worker_command(settings.engine, settings.settings, settings.niceness)
        try:
            process = await start_process(settings.name, command, env=settings.env)
        except OSError as error:
            raise ProcessLostError(settings.name, f"cannot be started: {error}") from error
        self._process = process
        nursery.start_soon(process.log_stderr)
        with trio.move_on_after(settings.start_s) as scope:
            kind, payload = await process.receive(0)
            if kind == b"X":
                raise EngineLoadError(payload.decode(errors="replace"))
            try:
                self.about = json.loads(payload)
            except ValueError:
                raise process.lost("wrote garbage instead of what it is") from None
            if settings.warm is not None:
                await self._warm(process, settings.warm)
        if scope.cancelled_caught:
            raise process.lost(f"not ready within {settings.start_s:g} s", "start_s")
        pid, generation = process.pid, self._generation
        _log.debug("worker_ready", engine=settings.name, pid=pid, generation=generation)

    async def _warm(self, process: Process, job: bytes) -> None:
        self._number += 1
        await process.send(b"J", self._number, job)
        while (await process.receive(self._number))[0] == b"P":
            pass

    async def _serve(self, job: _Job) -> None:
        if job.scope.cancel_called:
            return
        process = self._process
        if process is None:
            job.error = self.failure
            return
        self._number += 1
        try:
            # Outside of the job's scope: half a frame would put the stream out of step.
            await process.send(b"J", self._number, job.payload)
            with job.scope:
                await self._forward(process, job)
            if job.scope.cancelled_caught:
                await self._drain(process)
        except ProcessLostError as error:
            _log.warning("worker_lost", engine=self._settings.name, error=str(error))
            job.error = error
            await self._stop()

    async def _forward(self, process: Process, job: _Job) -> None:
        while True:
            kind, payload = await self._receive(process, job.silence_s)
            if kind == b"P":
                await self._give(job, payload)
                continue
            message = payload.decode(errors="replace")
            job.error = JobError(message) if kind == b"X" else None
            return

    async def _receive(self, process: Process, silence_s: float) -> tuple[bytes, bytes]:
        """Return the next frame of the job; say when it is late, and give up when it hangs."""
        late_s = self._settings.late_s
        given_up_s = trio.current_time() + silence_s
        if late_s is not None and late_s < silence_s:
            with trio.move_on_after(late_s):
                return await process.receive(self._number)
            self._be_late()
        ping_s = self._settings.ping_s or math.inf
        is_asked = False
        while (left_s := given_up_s - trio.current_time()) > 0:
            with trio.move_on_after(min(left_s, ping_s)) as waited:
                found = await process.receive(self._number)
                if found[0] != b"!":
                    self.is_late = False
                    return found
                is_asked = False
            if waited.cancelled_caught and left_s > ping_s:
                if is_asked:
                    raise process.lost(f"does not say within {ping_s:g} s that it is there")
                await process.send(b"?", self._number)
                is_asked = True
        raise process.lost(f"silent for {silence_s:g} s", "silence_s")

    async def _give(self, job: _Job, piece: bytes) -> None:
        """Hand a piece to the caller, who may be slow, or have paused the call."""
        if self._settings.late_s is not None:
            with trio.move_on_after(self._settings.late_s):
                await job.pieces.send(piece)
                return
            self._be_late()
        await job.pieces.send(piece)
        self.is_late = False

    async def _drain(self, process: Process) -> None:
        """Cancel the job in the process, and read it to its end."""
        limit_s = self._settings.cancel_s
        with trio.move_on_after(limit_s):
            await process.send(b"C", self._number)
            while (await self._receive(process, limit_s))[0] == b"P":
                pass
            return
        raise process.lost(f"still busy {limit_s:g} s after a cancel", "cancel_s")

    def _be_late(self) -> None:
        if not self.is_late:
            self.is_late = True
            _log.warning("worker_late", engine=self._settings.name, pid=self.pid)
            self._pool.replace_late()

    async def _stop(self, polite_s: float | None = None) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.end(_LADDER, polite_s=polite_s)
