"""One worker of a pool: the task that owns a process, and gives it one job after the other."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import structlog
import trio

from bargein.routes.containment import CONTAINED

from ._capture import Captured, OnOutput, Stream
from ._errors import ChildError, EngineLoadError, JobError, PoolClosedError, ProcessLostError
from ._process import Process, start_process, worker_command
from ._session import boot_clock_s
from ._settings import PoolSettings
from ._termination import interrupt_younger, stop_younger

_log = structlog.get_logger()
_INTERRUPT_S = 0.1
"""A SIGINT is lost while C code ignores it, as system(3) does, and a command that a shell starts
right after it has not got it; so it is sent again."""
_CLOSE_S = 0.5


@dataclass(slots=True, eq=False)
class Job:
    """One job on its way through the pool; see `Pool.run`."""

    payload: bytes
    silence_s: float
    pieces: trio.MemorySendChannel[bytes]
    on_begin: Callable[[int], None] | None
    on_output: OnOutput | None
    is_forced: Callable[[], bool]
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    is_begun: bool = False
    """Whether a process got it."""
    over: trio.Event = field(default_factory=trio.Event)
    """Set once its worker has nothing to do with it any more."""
    error: ChildError | None = field(
        default_factory=lambda: PoolClosedError("the pool was closed in the middle of a job")
    )
    """Why the pieces ended early; None once the engine said that they are complete."""


class Worker:
    """One process at a time; `run` owns it."""

    def __init__(
        self,
        settings: PoolSettings,
        is_unneeded: Callable[[], bool],
        on_late: Callable[[], None],
    ) -> None:
        """Start nothing yet.

        Args:
            settings: Those of the pool.
            is_unneeded: Asked between two jobs; True ends the worker.
            on_late: Called when a piece of its job is overdue.
        """
        self._settings = settings
        self._is_unneeded = is_unneeded
        self._on_late = on_late
        self._process: Process | None = None
        self._job: Job | None = None
        self._generation = 0
        self.is_late = False
        """Whether a piece of its job is overdue."""
        self.about: dict[str, Any] = {}
        """What the engine says about itself."""
        self.ready = trio.Event()
        """Set once the engine is loaded, or could not be (see `failure`)."""
        self.failure: ChildError | None = None
        """Why it could not start, or None while it works."""

    @property
    def pid(self) -> int | None:
        """The number of its process, None while there is none."""
        return None if self._process is None else self._process.pid

    async def run(self, jobs: trio.MemoryReceiveChannel[Job]) -> None:
        """Do jobs until cancelled, or not needed any more; with no process at the end."""
        async with trio.open_nursery() as nursery:
            try:
                while not self._is_unneeded():
                    if self._process is None and not self._settings.has_effects:
                        await self._start(nursery)  # so that the next job need not wait
                    self.ready.set()
                    await self._take(await jobs.receive(), nursery)
                    self.is_late = False
            except trio.EndOfChannel:
                pass
            finally:
                with trio.move_on_after(_CLOSE_S + self._settings.ladder.bound_s, shield=True):
                    await self._stop(_CLOSE_S)
                nursery.cancel_scope.cancel(reason="worker ended")

    async def _start(self, nursery: trio.Nursery) -> None:
        """Start a process in place of the old one; `failure` says whether it works."""
        await self._stop()
        try:
            self._process = process = await self._spawn()
            process.captured.read(nursery)
            nursery.start_soon(process.log_stderr)
            await self._load(process)
        except ChildError as error:
            self.failure = error
            await self._stop()
            _log.warning("worker_failed", engine=self._settings.name, error=str(error))
            return
        self.failure = None
        self._generation += 1
        pid, generation = process.pid, self._generation
        _log.debug("worker_ready", engine=self._settings.name, pid=pid, generation=generation)

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

    async def _load(self, process: Process) -> None:
        """Wait until the engine is loaded and warm."""
        settings = self._settings
        with trio.move_on_after(settings.start_s):
            kind, payload = await process.receive()
            if kind == b"X":
                raise EngineLoadError(payload.decode(errors="replace"))
            try:
                self.about = json.loads(payload)
            except ValueError:
                raise process.lost("wrote garbage instead of what it is") from None
            if settings.warm is not None:
                await process.send_job(settings.warm)
                while (await process.receive())[0] == b"P":
                    pass
            return
        raise process.lost(f"not ready within {settings.start_s:g} s", "start_s")

    async def _stop(self, polite_s: float | None = None) -> None:
        process, self._process = self._process, None
        if process is not None:
            await process.end(self._settings.ladder, polite_s=polite_s)

    async def _take(self, job: Job, nursery: trio.Nursery) -> None:
        """Do a job, in a process that is started if need be."""
        with job.pieces:
            try:
                if self._process is None or not self._process.is_alive:
                    await self._start(nursery)
                if self._process is None:
                    job.error = self.failure
                elif not job.scope.cancel_called:
                    await self._do(job, self._process)
            finally:
                self._job = None
                job.over.set()

    async def _do(self, job: Job, process: Process) -> None:
        self._job = job
        job.is_begun = True
        if job.on_begin is not None:
            job.on_begin(self._generation)
        since_s = boot_clock_s()
        try:
            # Outside of the job's scope: half a frame would put the stream out of step.
            await process.send_job(job.payload)
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

    async def _forward(self, process: Process, job: Job) -> None:
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
        now_s = trio.current_time()
        ping_s = self._settings.ping_s or math.inf
        late_at_s = now_s + (self._settings.late_s or math.inf)
        lost_at_s, ask_at_s, is_asked = now_s + silence_s, now_s + ping_s, False
        while True:
            with trio.move_on_at(min(late_at_s, lost_at_s, ask_at_s)) as waited:
                kind, payload = await process.receive()
                if kind != b"!":
                    self.is_late = False
                    return kind, payload
            now_s = trio.current_time()
            if not waited.cancelled_caught:
                ask_at_s, is_asked = now_s + ping_s, False
            elif now_s >= lost_at_s:
                raise process.lost(f"silent for {silence_s:g} s", "silence_s")
            elif now_s >= late_at_s:
                late_at_s = math.inf
                self._be_late()
            elif is_asked:
                raise process.lost(f"does not say within {ping_s:g} s that it is there")
            else:
                await process.send(b"?")
                ask_at_s, is_asked = now_s + ping_s, True

    async def _give(self, job: Job, piece: bytes) -> None:
        """Hand a piece to the caller, who may be slow, or have paused the call."""
        with trio.move_on_after(self._settings.late_s or math.inf):
            await job.pieces.send(piece)
            return
        self._be_late()
        await job.pieces.send(piece)
        self.is_late = False

    async def _drain(self, process: Process, job: Job, since_s: float) -> None:
        """Cancel the job in the process, read it to its end, and stop what it has started."""
        settings = self._settings
        every_s = _INTERRUPT_S if settings.has_effects else math.inf
        interrupted: set[tuple[int, bytes]] = set()
        is_over = False
        with trio.move_on_after(settings.cancel_s):
            while not (is_over or job.is_forced()):
                await process.send(b"C")
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
            self._on_late()

    def _on_output(self, stream: Stream, text: str) -> None:
        name = self._settings.name
        if self._job is None or self._job.on_output is None:
            _log.debug("worker_writes", engine=name, stream=stream, pii_text=text)
            return
        try:
            with CONTAINED:
                self._job.on_output(stream, text)
        except Exception as error:  # noqa: BLE001 - a listener's fault must not end the worker
            kind = type(error).__name__
            _log.warning("worker_listener_failed", engine=name, error=kind, pii_error=str(error))
