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
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog
import trio

from bargein.routes._contain import CONTAINED

from ._capture import Captured, OnOutput, Stream
from ._errors import ChildError, EngineLoadError, JobError, PoolClosedError, ProcessLostError
from ._ladder import SPARE_S, Ladder, interrupt_younger, never, stop_younger
from ._process import Process, start_process, worker_command
from ._session import boot_clock_s

_log = structlog.get_logger()
_LADDER = Ladder(int_s=0, term_s=0, kill_s=1.0)
"""Most workers keep nothing that a gentler end would save, and one that is stopped hears SIGKILL
alone."""
_INTERRUPT_S = 0.1
"""A SIGINT is lost while C code ignores it, as system(3) does, and a command that a shell starts
right after it has not got it; so it is sent again."""
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
    ladder: Ladder = _LADDER
    """How a worker is ended."""
    has_effects: bool = False
    """Whether a job does more than give pieces, as a tool's function does; POSIX only.  A process
    starts with the first job then.  What the job starts gets SIGINT when it is cancelled, and is
    stopped with it, and its caller waits for that.  What it writes is told to its caller."""


@dataclass(slots=True, eq=False)
class _Job:
    """One job on its way through the pool."""

    payload: bytes
    silence_s: float
    pieces: trio.MemorySendChannel[bytes]
    on_begin: Callable[[int], None] | None
    on_output: OnOutput | None
    is_forced: Callable[[], bool]
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    over: trio.Event = field(default_factory=trio.Event)
    """Set once its worker has nothing to do with it any more."""
    is_begun: bool = False
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
            job = _Job(payload, silence_s, sender, on_begin, on_output, is_forced)
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
                    with trio.move_on_after(self._cancel_bound_s, shield=True):
                        await job.over.wait()
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
    def _cancel_bound_s(self) -> float:
        return self._settings.cancel_s + 2 * self._settings.ladder.bound_s + SPARE_S

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
        self._job: _Job | None = None
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
                    if self._process is None and not self._settings.has_effects:
                        await self._try_start(nursery)  # so that the next job need not wait
                    self.ready.set()
                    await self._serve(await jobs.receive(), nursery)
                    self.is_late = False
            except trio.EndOfChannel:
                pass
            finally:
                self._pool.remove_worker(self)
                with trio.move_on_after(_CLOSE_S + self._settings.ladder.bound_s, shield=True):
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
        self._number = 0
        self._process = process = await self._spawn()
        process.captured.read(nursery)
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
        self._generation += 1
        pid, generation = process.pid, self._generation
        _log.debug("worker_ready", engine=settings.name, pid=pid, generation=generation)

    async def _spawn(self) -> Process:
        settings = self._settings
        streams: tuple[Stream, ...] = ("stdout", "stderr", "tty") if settings.has_effects else ()
        try:
            captured = Captured(streams, self._on_output)
            told = {**settings.settings, **{f"{name}": n for name, n in captured.theirs.items()}}
            command = worker_command(settings.engine, told, settings.niceness)
            return await start_process(settings.name, command, env=settings.env, captured=captured)
        except OSError as error:
            raise ProcessLostError(settings.name, f"cannot be started: {error}") from error

    def _on_output(self, stream: Stream, text: str) -> None:
        if self._job is None or self._job.on_output is None:
            _log.debug("worker_writes", engine=self._settings.name, stream=stream, pii_text=text)
            return
        try:
            with CONTAINED:
                self._job.on_output(stream, text)
        except Exception as error:  # noqa: BLE001 - a listener's fault must not end the worker
            _log.warning(
                "worker_listener_failed",
                engine=self._settings.name,
                error=type(error).__name__,
                pii_error=str(error),
            )

    async def _warm(self, process: Process, job: bytes) -> None:
        self._number += 1
        await process.send(b"J", self._number, job)
        while (await process.receive(self._number))[0] == b"P":
            pass

    async def _serve(self, job: _Job, nursery: trio.Nursery) -> None:
        """Do a job, in a process that is started if need be."""
        with job.pieces:
            try:
                if self._process is None or not self._process.is_alive:
                    await self._try_start(nursery)
                if self._process is None:
                    job.error = self.failure
                elif not job.scope.cancel_called:
                    await self._do(job, self._process)
            finally:
                self._job = None
                job.over.set()

    async def _do(self, job: _Job, process: Process) -> None:
        self._number += 1
        self._job = job
        job.is_begun = True
        if job.on_begin is not None:
            job.on_begin(self._generation)
        since_s = boot_clock_s()
        try:
            # Outside of the job's scope: half a frame would put the stream out of step.
            await process.send(b"J", self._number, job.payload)
            with job.scope:
                await self._forward(process, job)
            if job.scope.cancelled_caught:
                await self._drain(process, job, since_s)
            process.captured.drain()
        except ProcessLostError as error:
            job.error, self._process = error, None
            report = await process.end(self._settings.ladder, is_forced=job.is_forced)
            _log.warning(
                "worker_lost",
                engine=self._settings.name,
                error=str(error),
                pid=report.pid,
                generation=self._generation,
                ended_by=report.ended_by,
                swept=report.swept,
            )

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

    async def _drain(self, process: Process, job: _Job, since_s: float) -> None:
        """Cancel the job in the process, read it to its end, and stop what it has started."""
        settings = self._settings
        every_s = _INTERRUPT_S if settings.has_effects else math.inf
        interrupted: set[tuple[int, bytes]] = set()
        is_over = False
        with trio.move_on_after(settings.cancel_s):
            while not (is_over or job.is_forced()):
                await process.send(b"C", self._number)
                if settings.has_effects:  # each program once: for many the second means at once
                    interrupted |= await interrupt_younger(process.process, since_s, interrupted)
                with trio.move_on_after(every_s):
                    while (await self._receive(process, settings.cancel_s))[0] == b"P":
                        pass
                    is_over = True
        if not is_over:
            raise process.lost(f"still busy {settings.cancel_s:g} s after a cancel", "cancel_s")
        if settings.has_effects:
            await stop_younger(process.process, settings.ladder, since_s)

    def _be_late(self) -> None:
        if not self.is_late:
            self.is_late = True
            _log.warning("worker_late", engine=self._settings.name, pid=self.pid)
            self._pool.replace_late()

    async def _stop(self, polite_s: float | None = None) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.end(self._settings.ladder, polite_s=polite_s)
