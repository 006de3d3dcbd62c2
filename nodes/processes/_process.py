"""One child process: its start, its pipes, what it says on its standard error, and its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog
import trio

from ._capture import Captured
from ._errors import ProcessLostError
from ._termination import Ladder, StopReport, never, stop_process
from ._worker_child import AFTER_LENGTH, HEADER, frame

_log = structlog.get_logger()
_HOST = Path(__file__).with_name("_worker_child.py")
_SEND_S = 5.0
"""A worker reads in a thread, so a frame it has not taken by then means that it is stuck."""
_EXIT_S = 1.0
"""From the end of its output to the end of the process, before its exit code is given up."""
_MAX_FRAME = 64 << 20
"""24 minutes of audio at 22 kHz: a longer frame means that the stream is out of step."""
_STDERR_LINES = 20
_LONGEST_STDERR_LINE = 10_000


def worker_command(engine: Path, settings: Mapping[str, Any], niceness: int = 0) -> list[str]:
    """Return the command of a worker process around an engine; see `_worker_child.py`.

    Args:
        engine: Python file whose ``load(settings)`` returns the engine.
        settings: Handed to it, as JSON.
        niceness: How far it stands back where processors are few, 0 to 19.
    """
    arguments = [str(niceness), str(engine), json.dumps(dict(settings))]
    return [sys.executable, "-P", str(_HOST), *arguments]


async def start_process(
    name: str,
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    captured: Captured | None = None,
) -> Process:
    """Start a process in a session of its own, so that Ctrl+C reaches only us.

    Args:
        name: What it is called in logs and errors.
        command: Program and arguments.
        env: Its whole environment; ``None`` is ours.
        cwd: Its working directory; ``None`` is ours.
        captured: What it inherits to write to; closed with it, or here if it does not start.  If
            that has no "stderr", there is a pipe for `Process.log_stderr`.

    Raises:
        OSError: It cannot be started.
    """
    captured = captured or Captured()
    more: dict[str, Any] = {"pass_fds": (*captured.theirs.values(),)}  # POSIX only, so for mypy
    with captured.inherited():
        process = await trio.lowlevel.open_process(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=captured.theirs.get("stderr", subprocess.PIPE),
            env=None if env is None else dict(env),
            cwd=cwd,
            start_new_session=True,
            **more,
        )
    return Process(name, process, captured)


class Process:
    """A child process that is talked to over its standard input and output."""

    def __init__(self, name: str, process: trio.Process, captured: Captured) -> None:
        """Use `start_process`."""
        assert process.stdin is not None
        assert process.stdout is not None
        self.name = name
        self.process = process
        self.captured = captured
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._buffer = bytearray()
        self._job = 0
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)

    @property
    def pid(self) -> int:
        """The process's number."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs; one that is stopped or hangs does."""
        return self.process.poll() is None

    def stderr_lines(self, most: int = _STDERR_LINES) -> list[str]:
        """Return the last lines that it wrote to its standard error."""
        return list(self._stderr)[-most:]

    def lost(self, problem: str, limit: str = "") -> ProcessLostError:
        """Return the error that says why it cannot be used any more."""
        return ProcessLostError(self.name, problem, " / ".join(self.stderr_lines()), limit)

    async def send_job(self, payload: bytes) -> None:
        """Send the next job; see `send`."""
        self._job += 1
        await self.send(b"J", payload)

    async def send(self, kind: bytes, payload: bytes = b"") -> None:
        """Send a frame of the newest job, whole, as half a frame would garble the next.

        Cancelling has no effect.

        Raises:
            ProcessLostError: It takes nothing any more, or not within 5 s.
        """
        try:
            with trio.fail_after(_SEND_S, shield=True):
                await self._stdin.send_all(frame(kind, self._job, payload))
        except trio.TooSlowError:
            raise self.lost(f"took no input for {_SEND_S:g} s") from None
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            raise await self._died() from None

    async def receive(self) -> tuple[bytes, bytes]:
        """Return kind and payload of the newest job's next frame; those of older ones are dropped.

        Before the first job, it is what the process says of its start.

        Cancelling is safe: what has come is kept.

        Raises:
            ProcessLostError: It ended, or wrote what is no frame.
        """
        while True:
            if (found := self._frame()) is not None:
                kind, number, payload = found
                if number > self._job or kind not in b"RPEX!":
                    raise self.lost(f"wrote garbage: a frame {kind!r} of job {number}")
                if number == self._job:
                    return kind, payload
                if kind in b"EX":
                    _log.info("late_result_dropped", process=self.name, job=number)
                continue
            if not await self._read():
                raise await self._died()

    async def line(self, longest: int) -> bytes | None:
        """Return the next line, for a program that writes no frames; None at the end of its output.

        Cancelling is safe: what has come is kept.

        Args:
            longest: Length of a line in bytes.

        Raises:
            ProcessLostError: The line is longer.
        """
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            if (searched := len(self._buffer)) > longest:
                raise self.lost(f"sent a message of more than {longest >> 20} MiB")
            if not await self._read():
                return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    async def close_output_after_end(self, wait_s: float) -> None:
        """Close its output `wait_s` after its end, as a child of it may hold the pipe open."""
        await self.process.wait()
        await trio.sleep(wait_s)
        await self._stdout.aclose()

    async def send_line(self, line: bytes) -> None:
        """Send a line; cancelling may leave half of it.

        Raises:
            trio.BrokenResourceError: It reads no more.
        """
        await self._stdin.send_all(line + b"\n")

    async def end(
        self,
        ladder: Ladder,
        *,
        polite_s: float | None = None,
        is_forced: Callable[[], bool] = never,
    ) -> StopReport:
        """End the process and its session: close its input, then climb the ladder of signals.

        Shielded and bounded, by `polite_s` and the sum of the ladder's times.

        Args:
            ladder: The signals' times.
            polite_s: How long it may take to end by itself once its input is closed; ``None``
                leaves the input open, as its end kills a worker.
            is_forced: Asked again and again; once it says True, SIGKILL is next.
        """
        if polite_s is not None:
            with trio.move_on_after(polite_s, shield=True):
                await self._stdin.aclose()
                await self.process.wait()
        if sys.platform == "win32":  # no sessions and no signals there
            self.process.kill()
            await self.process.wait()
            report = StopReport(self.pid, None, swept=0, left=0, took_s=0)
        else:
            report = await stop_process(self.process, ladder, is_forced=is_forced)
        for stream in (self._stdin, self._stdout, self.process.stderr):
            if stream is not None:
                await trio.aclose_forcefully(stream)
        self.captured.drain()
        self.captured.close()
        _log.debug("process_ended", process=self.name, pid=self.pid, ended_by=report.ended_by)
        return report

    async def log_stderr(self) -> None:
        """Log the lines of its standard error until it is closed, and keep the last ones."""
        if self.process.stderr is None:
            return
        log = _log.bind(process=self.name, pid=self.pid)
        rest = b""
        with suppress(trio.ClosedResourceError):
            async for data in self.process.stderr:
                *lines, rest = (rest + data).split(b"\n")
                if len(rest) > _LONGEST_STDERR_LINE:
                    lines, rest = [*lines, rest], b""
                for line in lines:
                    text = line.decode(errors="replace")
                    self._stderr.append(text[:_LONGEST_STDERR_LINE])
                    log.debug("process_stderr", pii_line=text)

    async def _read(self) -> bool:
        """Read what comes next; return False at the end of the output."""
        before = len(self._buffer)
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            self._buffer += await self._stdout.receive_some(1 << 16)
        return len(self._buffer) > before

    def _frame(self) -> tuple[bytes, int, bytes] | None:
        """Take the next whole frame out of what has come."""
        if len(self._buffer) < HEADER.size:
            return None
        length, kind, job = HEADER.unpack_from(self._buffer)
        if not AFTER_LENGTH <= length <= _MAX_FRAME:
            raise self.lost(f"wrote garbage: a frame of {length} bytes")
        if len(self._buffer) < 4 + length:
            return None
        payload = bytes(self._buffer[HEADER.size : 4 + length])
        del self._buffer[: 4 + length]
        return bytes((kind,)), job, payload

    async def _died(self) -> ProcessLostError:
        with trio.move_on_after(_EXIT_S, shield=True):
            await self.process.wait()
        return self.lost(f"the worker process ended (exit code {self.process.poll()!r})")
