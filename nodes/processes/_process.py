"""One child process: its environment, its start, its pipes, its standard error, and its end.

It gets few variables of our environment, so no key or token reaches it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import trio

from bargein.routes.logs import get_logger

from ._errors import ProcessLostError
from ._process_output import CapturedOutput, LineDecoder
from ._termination import SignalLadder, StopReport, never, stop_process

_log = get_logger()
_STDERR_LINES = 20

INHERITED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ"),
)
"""Our environment variables that every process gets: those that MCP servers get too, and those for
language and time zone."""

INHERITED_BY_WORKERS = (
    *("BARGEIN_MODELS", "XDG_CACHE_HOME"),
    *("PYTHONHOME", "PYTHONPATH", "PYTHONPYCACHEPREFIX", "PYTHONDONTWRITEBYTECODE"),
    *("PYTHONUTF8", "PYTHONIOENCODING", "PYTHONWARNINGS", "VIRTUAL_ENV"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "LD_PRELOAD"),
    *("CUDA_VISIBLE_DEVICES", "CT2_FORCE_CPU_ISA", "ORT_DISABLE_TELEMETRY"),
    *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    # Windows: without the first, no Python starts.
    *("SYSTEMROOT", "APPDATA", "COMSPEC", "LOCALAPPDATA", "PATHEXT", "TEMP", "TMP", "USERPROFILE"),
)
"""What a Python process and its native libraries need besides: where they are, and how many threads
they use."""


def inherited(names: Iterable[str]) -> dict[str, str]:
    """Return those of our environment variables that a process gets.

    Args:
        names: The names of variables besides ``INHERITED``.
    """
    wanted = (*INHERITED, *names)
    return {name: os.environ[name] for name in wanted if name in os.environ}


async def start_process(
    name: str,
    command: Sequence[str],
    nursery: trio.Nursery,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    captured: CapturedOutput | None = None,
) -> Process:
    """Start a process in a session of its own, so that Ctrl+C reaches only us.

    Args:
        name: Its name in logs and errors.
        command: Program and arguments.
        nursery: Owns the tasks that read its other streams, until its end.
        env: Its whole environment; ``None`` inherits ours.
        cwd: Its working directory; ``None`` inherits ours.
        captured: The streams to capture; closed at its end, or here if it does not start. If
            standard error is not among them, it is logged.

    Raises:
        OSError: The process cannot be started.
    """
    captured = captured or CapturedOutput()
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
    child = Process(name, process, captured)
    captured.read(nursery)
    nursery.start_soon(child.log_stderr)
    return child


class Process:
    """A child process that we drive over its standard input and output."""

    def __init__(self, name: str, process: trio.Process, captured: CapturedOutput) -> None:
        """Use `start_process`."""
        assert process.stdin is not None
        assert process.stdout is not None
        self.name = name
        self.process = process
        self.captured = captured
        self.stdin = process.stdin
        self.buffer = bytearray()
        """Output that has been read and not consumed yet."""
        self._stdout = process.stdout
        self._stderr: deque[str] = deque(maxlen=_STDERR_LINES)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs; a stopped or hanging one counts as running."""
        return self.process.poll() is None

    def stderr_lines(self, most: int = _STDERR_LINES) -> list[str]:
        """Return the last lines of its standard error."""
        return list(self._stderr)[-most:]

    def lost(self, problem: str, limit: str = "") -> ProcessLostError:
        """Return the error that says why the process can no longer be used."""
        return ProcessLostError(self.name, problem, " / ".join(self.stderr_lines()), limit)

    async def read(self) -> bool:
        """Read more output into the buffer; return False at its end.

        Cancelling is safe: nothing read is lost.
        """
        before = len(self.buffer)
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            self.buffer += await self._stdout.receive_some(1 << 16)
        return len(self.buffer) > before

    def consume(self, size: int) -> bytes:
        """Remove that many bytes from the beginning of the buffer, and return them."""
        consumed = bytes(self.buffer[:size])
        del self.buffer[:size]
        return consumed

    async def close_output_after_end(self, wait_s: float) -> None:
        """Close its output `wait_s` after its end, because a child of it may hold the pipe open."""
        await self.process.wait()
        await trio.sleep(wait_s)
        await self._stdout.aclose()

    async def end(
        self,
        ladder: SignalLadder,
        *,
        polite_s: float = 0,
        is_forced: Callable[[], bool] = never,
    ) -> StopReport:
        """End the process and its session: close its input, then climb the ladder of signals.

        Call it in a shielded scope; it takes at most `polite_s` plus the ladder's `bound_s`.

        Args:
            ladder: The time of each signal.
            polite_s: How long it may take to end by itself after its input is closed, in seconds; 0
                leaves the input open, since closing it kills a worker.
            is_forced: See `stop_process`.
        """
        if polite_s:
            with trio.move_on_after(polite_s):
                await self.stdin.aclose()
                await self.process.wait()
        if sys.platform == "win32":  # has no sessions and no signals
            self.process.kill()
            await self.process.wait()
            report = StopReport(self.pid, None, swept=0, left=0, took_s=0)
        else:
            report = await stop_process(self.process, ladder, is_forced=is_forced)
        for stream in (self.stdin, self._stdout, self.process.stderr):
            if stream is not None:
                await trio.aclose_forcefully(stream)
        self.captured.drain()
        self.captured.close()
        _log.debug("process_ended", process=self.name, pid=self.pid, ended_by=report.ended_by)
        return report

    async def log_stderr(self) -> None:
        """Log the lines of its standard error until it closes, and keep the last ones."""
        if self.process.stderr is None:
            return
        name, pid = self.name, self.pid

        def keep(text: str) -> None:
            for line in text.splitlines():
                self._stderr.append(line)
                _log.debug("process_stderr", process=name, pid=pid, pii_line=line)

        lines = LineDecoder(keep)
        with suppress(trio.ClosedResourceError):
            async for data in self.process.stderr:
                lines.feed(bytes(data))
        lines.flush()
