"""The parent's side of one worker process; `_worker_child.py` describes the frames."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import structlog
import trio

from nodes.processes import (
    DEFAULT_LADDER,
    SPARE_S,
    TERM,
    Ladder,
    StopReport,
    Stream,
    Tap,
    open_terminal,
    stop_process,
)

from ._errors import WorkerDiedError, WorkerStartError
from ._reference import main_script
from ._worker_child import HEADER, NUMBER, frame

_log = structlog.get_logger()
_CHILD = Path(__file__).with_name("_worker_child.py")
_SEND_S = 5.0
"""The child reads in a thread, so a frame it has not taken by then means that it is stuck."""
_EXIT_S = 1.0
"""From the end of its socket to the end of the process, before the exit code is given up."""
OnText = Callable[[Stream, str], None]


class WorkerProcess:
    """One process, from its start to its end; use `start_worker`."""

    def __init__(
        self, name: str, process: trio.Process, channel: trio.SocketStream, asked: int
    ) -> None:
        """Talk to a process over its socket, and interrupt it through its pipe."""
        self._name = name
        self._process = process
        self._channel = channel
        self._asked = asked
        self._buffer = bytearray()
        self._is_ended = False
        self.taps: list[Tap] = []

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def process(self) -> trio.Process:
        """The process itself."""
        return self._process

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    async def send(self, kind: bytes, call: int, payload: bytes) -> None:
        """Send a frame, whole: half a frame would garble the next.

        Raises:
            WorkerDiedError: It takes nothing any more.
        """
        try:
            with trio.fail_after(_SEND_S, shield=True):
                await self._channel.send_all(frame(kind, call, payload))
        except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise await self._died() from error

    async def answer(self, call: int) -> tuple[bytes, bytes]:
        """Return kind and payload of the answer to a call; answers to older calls are dropped.

        Cancelling is safe: nothing is lost.

        Raises:
            WorkerDiedError: It ended before.
        """
        while True:
            kind, number, payload = await self._receive()
            if number == call:
                return kind, payload
            _log.info("worker_late_result_dropped", worker=self._name, call=number)

    def interrupt(self, call: int) -> None:
        """Send SIGINT for one call; it does nothing if that is not the one that runs."""
        if self._is_ended or not self.is_alive:
            return
        with suppress(BlockingIOError, BrokenPipeError):  # full of numbers that nobody reads
            os.write(self._asked, NUMBER.pack(call))
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)

    def drain(self) -> None:
        """Pass on all that it has written so far."""
        if not self._is_ended:
            for tap in self.taps:
                tap.drain()

    async def end(self, ladder: Ladder, is_forced: Callable[[], bool]) -> StopReport:
        """Stop it and all that it has started; shielded and bounded, as `stop_process` is."""
        report = await stop_process(self._process, ladder, is_forced=is_forced)
        self.drain()
        self._is_ended = True
        for tap in self.taps:
            tap.close()
        self._channel.socket.close()
        os.close(self._asked)
        return report

    async def _receive(self) -> tuple[bytes, int, bytes]:
        buffer = self._buffer
        while True:
            if len(buffer) >= HEADER.size:
                length, kind, call = HEADER.unpack_from(buffer)
                if len(buffer) >= 4 + length:
                    payload = bytes(buffer[HEADER.size : 4 + length])
                    del buffer[: 4 + length]
                    return bytes((kind,)), call, payload
            try:
                data = await self._channel.receive_some(1 << 16)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                data = b""
            if not data:
                raise await self._died()
            buffer += data

    async def _died(self) -> WorkerDiedError:
        with trio.move_on_after(_EXIT_S, shield=True):
            await self._process.wait()
        how = f"exit code {self._process.poll()!r}"
        return WorkerDiedError(
            f"the worker process {self._name!r} ended ({how}) in the middle of a call; what the "
            "call has done is not known, and the variables of the worker are lost"
        )


async def start_worker(
    name: str,
    on_text: OnText,
    nursery: trio.Nursery,
    *,
    limit_s: float,
    cwd: str | os.PathLike[str] | None,
    env: Mapping[str, str] | None,
) -> WorkerProcess:
    """Start a process and wait until it is ready; cancelling ends it.

    Args:
        name: What it is called in logs and errors.
        on_text: Called with what it writes.
        nursery: Where its output is read, until it is ended.
        limit_s: Seconds that it may take.
        cwd: Its folder; ``None`` for ours.
        env: Variables beside ours, or instead of them.

    Raises:
        WorkerStartError: It cannot be started, or is not ready in time.
    """
    worker = await _spawn(name, on_text, cwd, env)
    for tap in worker.taps:
        nursery.start_soon(tap.run)
    is_ready = False
    try:
        with trio.move_on_after(limit_s):
            setup = {"path": list(sys.path), "main": main_script()}
            await worker.send(b"S", 0, pickle.dumps(setup))
            await worker.answer(0)
            is_ready = True
    except WorkerDiedError as error:
        raise WorkerStartError(f"the worker process {name!r} does not start: {error}") from error
    finally:
        if not is_ready:
            with trio.move_on_after(DEFAULT_LADDER.bound_s + SPARE_S, shield=True):
                await worker.end(DEFAULT_LADDER, is_forced=lambda: True)
    if not is_ready:
        raise WorkerStartError(f"the worker process {name!r} was not ready within {limit_s:g} s")
    return worker


async def _spawn(
    name: str,
    on_text: OnText,
    cwd: str | os.PathLike[str] | None,
    env: Mapping[str, str] | None,
) -> WorkerProcess:
    if sys.platform == "win32":
        raise WorkerStartError("worker processes need the signals of a POSIX system, not Windows")
    with ExitStack() as theirs, ExitStack() as on_failure:

        def keep(ours: int, other: int) -> tuple[int, int]:
            on_failure.callback(os.close, ours)
            theirs.callback(os.close, other)
            return ours, other

        channel, far = socket.socketpair()
        on_failure.callback(channel.close)
        theirs.callback(far.close)
        asked_read, asked = os.pipe()
        keep(asked, asked_read)
        out, out_write = keep(*os.pipe())
        err, err_write = keep(*os.pipe())
        tty, terminal = keep(*open_terminal())
        os.set_blocking(asked, False)
        passed = (far.fileno(), asked_read, terminal)
        try:
            process = await trio.lowlevel.open_process(
                [sys.executable, "-P", str(_CHILD), *map(str, passed)],
                stdin=subprocess.DEVNULL,
                stdout=out_write,
                stderr=err_write,
                cwd=cwd,
                env={**os.environ, "TERM": TERM, **(env or {})},
                pass_fds=passed,
                start_new_session=True,
            )
        except OSError as error:
            raise WorkerStartError(f"the worker process {name!r} cannot start: {error}") from error
        on_failure.pop_all()
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(channel))
    worker = WorkerProcess(name, process, stream, asked)
    streams: tuple[tuple[int, Stream], ...] = ((out, "stdout"), (err, "stderr"), (tty, "tty"))
    worker.taps = [Tap(number, _labelled(on_text, label)) for number, label in streams]
    return worker


def _labelled(on_text: OnText, stream: Stream) -> Callable[[str], None]:
    def take(text: str) -> None:
        on_text(stream, text)

    return take


def load_answer(payload: bytes) -> Any:
    """Return what a worker has pickled."""
    import io

    return _Unpickler(io.BytesIO(payload)).load()


class _Unpickler(pickle.Unpickler):
    """Knows our ``__main__`` by the name that it has in a worker."""

    def find_class(self, module: str, name: str) -> Any:
        return super().find_class("__main__" if module == "__mp_main__" else module, name)
