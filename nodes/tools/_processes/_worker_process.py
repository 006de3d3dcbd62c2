"""The parent's side of a worker process for functions; see `_child_functions.py`."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import trio

from nodes.processes import (
    DEFAULT_LADDER,
    SPARE_S,
    TERM,
    Ladder,
    Process,
    ProcessLostError,
    StopReport,
    Stream,
    Tap,
    open_terminal,
    start_process,
    worker_command,
)

from ._child_functions import NUMBER
from ._errors import WorkerDiedError, WorkerStartError
from ._reference import main_script

_CHILD = Path(__file__).with_name("_child_functions.py")
OnText = Callable[[Stream, str], None]


class WorkerProcess:
    """One process, from its start to its end; use `start_worker`."""

    def __init__(self, process: Process, asked: int, taps: list[Tap]) -> None:
        """Talk to a process, interrupt it through a pipe, and hear what it writes."""
        self._process = process
        self._asked = asked
        self._answer = 0, b""
        self._is_ended = False
        self.taps = taps

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def process(self) -> trio.Process:
        """The process itself."""
        return self._process.process

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.is_alive

    async def ready(self) -> None:
        """Wait until it takes calls.

        Raises:
            WorkerStartError: It ended, or cannot be set up.
        """
        try:
            kind, payload = await self._process.receive(0)
        except ProcessLostError as error:
            raise WorkerStartError(f"the worker process does not start: {error}") from error
        if kind != b"R":
            raise WorkerStartError(f"the worker process does not start: {payload.decode()}")

    async def send(self, call: int, payload: bytes) -> None:
        """Send a call, whole; cancelling has no effect.

        Raises:
            WorkerDiedError: It takes nothing any more.
        """
        with self._told():
            await self._process.send(b"J", call, payload)

    async def answer(self, call: int) -> dict[str, Any]:
        """Return the answer to a call; answers to older calls are dropped.

        Cancelling is safe: nothing is lost.

        Raises:
            WorkerDiedError: It ended before, or wrote what is no answer.
        """
        with self._told():
            while True:
                kind, payload = await self._process.receive(call)
                if kind != b"P":
                    break
                self._answer = call, payload  # kept, as the end of the job may be waited for anew
            number, data = self._answer
            answer: Any = None
            with suppress(ValueError):
                answer = json.loads(data)
            if number != call or not isinstance(answer, dict):
                raise self._process.lost("wrote what is no answer")
        return answer

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
        report = await self._process.end(ladder, is_forced=is_forced, polite_s=None)
        self.drain()
        self._is_ended = True
        for tap in self.taps:
            tap.close()
        os.close(self._asked)
        return report

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except ProcessLostError as error:
            raise WorkerDiedError(
                f"{error} in the middle of a call; what the call has done is not known, and the "
                "variables of the worker are lost"
            ) from error


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
            await worker.ready()
            is_ready = True
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

        asked_read, asked = os.pipe()
        keep(asked, asked_read)
        out, out_write = keep(*os.pipe())
        err, err_write = keep(*os.pipe())
        tty, terminal = keep(*open_terminal())
        os.set_blocking(asked, False)
        settings = {
            **{"stdout": out_write, "asked": asked_read, "terminal": terminal},
            **{"path": list(sys.path), "main": main_script()},
        }
        try:
            process = await start_process(
                f"the worker process {name!r}",
                worker_command(_CHILD, settings),
                cwd=cwd,
                env={**os.environ, "TERM": TERM, **(env or {})},
                stderr=err_write,
                pass_fds=(out_write, asked_read, terminal),
            )
        except OSError as error:
            raise WorkerStartError(f"the worker process {name!r} cannot start: {error}") from error
        on_failure.pop_all()
    streams: tuple[tuple[int, Stream], ...] = ((out, "stdout"), (err, "stderr"), (tty, "tty"))
    taps = [Tap(number, _labelled(on_text, label)) for number, label in streams]
    return WorkerProcess(process, asked, taps)


def _labelled(on_text: OnText, stream: Stream) -> Callable[[str], None]:
    def take(text: str) -> None:
        on_text(stream, text)

    return take
