"""Speech engines in worker processes: a bounded pool that all calls share.

One task owns one process and takes jobs from a channel, so there is nothing to lock.  A cancelled
job is dropped at once for its caller; its task then drains what is left of it, and kills the
process only if it does not come to an end in time.  The frames are described in
`_worker_child.py`.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import structlog
import trio

from bridge.events import WordTiming

from ._errors import SpeechEngineError, SpeechNotOpenError, SpeechWorkerError
from ._protocols import SpeechPiece

_log = structlog.get_logger()
_CHILD = Path(__file__).with_name("_worker_child.py")
_HEADER = struct.Struct("<IBI")
_MAX_FRAME = 256 << 20
"""More than an hour of audio: a longer frame means that the stream is out of step."""
_CLOSE_S = 1.0
_PIECES_AHEAD = 4
_LONGEST_LINE = 10_000


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How the workers of one engine are run."""

    name: str
    """What the engine is called in logs and errors."""
    engine: Path
    """Python file whose ``load(settings)`` returns the engine; runs in the worker only."""
    settings: Mapping[str, str | int | float | None]
    """Handed to ``load``, as JSON."""
    size: int = 1
    """Number of processes: that many texts are synthesised at once, more wait their turn."""
    start_s: float = 60.0
    """A worker that is not ready by then is killed."""
    cancel_s: float = 3.0
    """A worker that is still busy with a cancelled text by then is killed and replaced."""


@dataclass(slots=True, eq=False)
class _Job:
    """One text on its way through the pool."""

    text: str
    pieces: trio.MemorySendChannel[SpeechPiece]
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    error: SpeechEngineError | SpeechWorkerError | None = field(
        default_factory=lambda: SpeechWorkerError("the engine was closed in the middle of a text")
    )
    """Why the pieces ended early; None once the engine said that they are complete."""


class WorkerPool:
    """Worker processes of one engine; open it, then call `synthesize`."""

    def __init__(self, settings: WorkerSettings) -> None:
        """Keep the settings; processes are started by `open`."""
        self._settings = settings
        self._jobs: trio.MemorySendChannel[_Job] | None = None
        self._sample_rate_hz = 0

    @property
    def name(self) -> str:
        """The engine's name, for logs and errors."""
        return self._settings.name

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of the pieces.

        Raises:
            SpeechNotOpenError: The pool was never open: the engine tells it when it has loaded.
        """
        if not self._sample_rate_hz:
            raise SpeechNotOpenError(self.name)
        return self._sample_rate_hz

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Start the workers and wait until each has loaded its engine.

        Leaving the block ends them; none is left after two seconds.

        Raises:
            SpeechEngineError: The engine cannot load.
            SpeechWorkerError: A process died or was not ready in time.
        """
        jobs_in, jobs_out = trio.open_memory_channel[_Job](0)
        workers = [_Worker(self._settings) for _ in range(self._settings.size)]
        failure: SpeechEngineError | SpeechWorkerError | None = None
        with jobs_in, jobs_out:
            async with trio.open_nursery() as nursery:
                for worker in workers:
                    nursery.start_soon(worker.run, jobs_out)
                for worker in workers:
                    await worker.ready.wait()
                failure = next((worker.failure for worker in workers if worker.failure), None)
                if failure is None:
                    self._sample_rate_hz = workers[0].sample_rate_hz
                    self._jobs = jobs_in
                    try:
                        yield
                    finally:
                        self._jobs = None
                        nursery.cancel_scope.cancel(reason="speech engine closed")
                nursery.cancel_scope.cancel(reason="a speech worker failed to start")
        if failure is not None:  # raised out here, so that no nursery wraps it
            raise failure

    async def synthesize(self, text: str) -> AsyncGenerator[SpeechPiece, None]:
        """Yield the pieces of a text; waits its turn when all workers are busy.

        Cancelling is safe: the job is dropped, and no piece of it reaches another text.  Surround
        it with ``contextlib.aclosing``, so that it is dropped at once and not when the garbage
        collector finds it.

        Raises:
            SpeechEngineError: The engine refuses this text.
            SpeechWorkerError: The worker died, or the pool was closed; what came before is good,
                the rest is lost.
            SpeechNotOpenError: The pool is not open.
        """
        if self._jobs is None:
            raise SpeechNotOpenError(self.name)
        pieces_in, pieces_out = trio.open_memory_channel[SpeechPiece](_PIECES_AHEAD)
        job = _Job(text, pieces_in)
        try:
            try:
                await self._jobs.send(job)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                raise SpeechNotOpenError(self.name) from None
            async for piece in pieces_out:
                yield piece
        finally:
            job.scope.cancel(reason="text dropped")
            pieces_in.close()
            pieces_out.close()
        if job.error is not None:
            raise job.error


class _Worker:
    """One process and the task that owns it."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._process: trio.Process | None = None
        self._buffer = bytearray()
        self._number = 0
        self._generation = 0
        self.sample_rate_hz = 0
        self.ready = trio.Event()
        """Set once the engine is loaded, or could not be (see `failure`)."""
        self.failure: SpeechEngineError | SpeechWorkerError | None = None
        """Why it could not start, or None while it works."""

    async def run(self, jobs: trio.MemoryReceiveChannel[_Job]) -> None:
        """Serve jobs until cancelled; with no process at the end."""
        async with trio.open_nursery() as nursery:
            try:
                await self._try_start(nursery)
                self.ready.set()
                async for job in jobs:
                    if self._process is None:
                        await self._try_start(nursery)
                    with job.pieces:
                        await self._serve(job)
                    if self._process is None:  # at once, so that the next text need not wait
                        await self._try_start(nursery)
            finally:
                with trio.move_on_after(3 * _CLOSE_S, shield=True):
                    await self._stop()
                nursery.cancel_scope.cancel(reason="speech worker ended")

    async def _try_start(self, nursery: trio.Nursery) -> None:
        try:
            await self._start(nursery)
            self.failure = None
        except (SpeechEngineError, SpeechWorkerError) as error:
            self.failure = error
            await self._stop()
            _log.warning("speech_worker_failed", engine=self._settings.name, error=str(error))

    async def _start(self, nursery: trio.Nursery) -> None:
        settings = self._settings
        self._generation += 1
        self._buffer.clear()
        command = [sys.executable, "-P", str(_CHILD), str(settings.engine)]
        try:
            self._process = await trio.lowlevel.open_process(
                [*command, json.dumps(dict(settings.settings))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl+C is for the parent alone
            )
        except OSError as error:
            raise SpeechWorkerError(
                f"{settings.name}: no process can be started: {error}"
            ) from error
        nursery.start_soon(self._log_stderr, self._process)
        with trio.move_on_after(settings.start_s) as scope:
            kind, _, payload = await self._receive()
        if scope.cancelled_caught:
            raise SpeechWorkerError(f"{settings.name}: not ready within {settings.start_s} s")
        if kind == b"X":
            raise SpeechEngineError(f"{settings.name} cannot load: {payload.decode()}")
        self.sample_rate_hz = json.loads(payload)["sample_rate_hz"]
        _log.debug(
            "speech_worker_ready",
            engine=settings.name,
            pid=self._process.pid,
            generation=self._generation,
        )

    async def _serve(self, job: _Job) -> None:
        if job.scope.cancel_called:
            return
        if self._process is None:
            job.error = self.failure
            return
        self._number += 1
        try:
            # Outside of the job's scope: half a frame would put the stream out of step.
            await self._send(b"T", job.text.encode())
            with job.scope:
                await self._forward(job)
            if job.scope.cancelled_caught:
                await self._drain()
        except (SpeechWorkerError, trio.BrokenResourceError) as error:
            _log.warning("speech_worker_lost", engine=self._settings.name, error=repr(error))
            job.error = SpeechWorkerError(f"{self._settings.name}: {error}")
            await self._stop()

    async def _forward(self, job: _Job) -> None:
        while True:
            kind, number, payload = await self._receive()
            if number != self._number:
                raise SpeechWorkerError(f"job {number} answered, job {self._number} was asked")
            if kind == b"P":
                await job.pieces.send(_piece(payload))
            else:
                failed = f"{self._settings.name}: {payload.decode()}"
                job.error = SpeechEngineError(failed) if kind == b"X" else None
                return

    async def _drain(self) -> None:
        """Cancel the job in the process, and read it to its end."""
        with trio.move_on_after(self._settings.cancel_s) as scope:
            await self._send(b"C")
            while (await self._receive())[0] == b"P":
                pass
        if scope.cancelled_caught:
            raise SpeechWorkerError(f"still busy {self._settings.cancel_s} s after a cancel")

    async def _send(self, kind: bytes, payload: bytes = b"") -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        head = _HEADER.pack(5 + len(payload), kind[0], self._number)
        await self._process.stdin.send_all(head + payload)

    async def _receive(self) -> tuple[bytes, int, bytes]:
        """Return the next frame; cancelling loses nothing, what has come is kept."""
        assert self._process is not None
        assert self._process.stdout is not None
        while True:
            if len(self._buffer) >= _HEADER.size:
                length, kind, number = _HEADER.unpack_from(self._buffer)
                if length > _MAX_FRAME:
                    raise SpeechWorkerError(f"a frame of {length} bytes")
                if len(self._buffer) >= 4 + length:
                    payload = bytes(self._buffer[_HEADER.size : 4 + length])
                    del self._buffer[: 4 + length]
                    return bytes((kind,)), number, payload
            data = await self._process.stdout.receive_some(1 << 16)
            if not data:
                raise SpeechWorkerError("the worker process died")
            self._buffer += data

    async def _stop(self) -> None:
        """End the process: by closing its input, then by force."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with trio.move_on_after(_CLOSE_S, shield=True):
            await process.stdin.aclose()
            await process.wait()
        if process.returncode is None:
            _kill(process)
        with trio.move_on_after(_CLOSE_S, shield=True):
            await process.wait()
            await process.stdout.aclose()
        _log.debug("speech_worker_ended", engine=self._settings.name, code=process.returncode)

    async def _log_stderr(self, process: trio.Process) -> None:
        assert process.stderr is not None
        log = _log.bind(engine=self._settings.name, pid=process.pid)
        rest = b""
        async with process.stderr:
            async for data in process.stderr:
                *lines, rest = (rest + data).split(b"\n")
                if len(rest) > _LONGEST_LINE:
                    lines, rest = [*lines, rest], b""
                for line in lines:
                    log.debug("speech_worker_stderr", pii_line=line.decode(errors="replace"))


def _piece(payload: bytes) -> SpeechPiece:
    (size,) = struct.unpack_from("<I", payload)
    words = tuple(WordTiming(*word) for word in json.loads(payload[4 : 4 + size]))
    return SpeechPiece(payload[4 + size :], words)


def _kill(process: trio.Process) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
