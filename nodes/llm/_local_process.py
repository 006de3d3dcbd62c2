"""The parent's side of the worker process that `_local_child.py` describes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import structlog
import trio
from pydantic import BaseModel, ConfigDict, ValidationError

from ._assembler import Chunk
from ._errors import ChatModelError

_log = structlog.get_logger()
_CHILD = Path(__file__).with_name("_local_child.py")
_MAX_LINE_BYTES = 4 << 20
_EXIT_S = 0.5
_END_S = 5.0
_WRITE_S = 5.0
_LOG_LINES_KEPT = 20


class Line(BaseModel):
    """One line from the worker."""

    model_config = ConfigDict(defer_build=True)

    id: int = 0
    chunk: Chunk | None = None
    done: bool = False
    ready: bool = False
    error: str | None = None


class LocalProcess:
    """A worker that has loaded its model.  One task at a time may use it."""

    def __init__(self, process: trio.Process, model: str) -> None:
        """Talk to a process whose three streams are pipes."""
        if process.stdin is None or process.stdout is None:
            raise ValueError("the worker's input and output must be pipes")
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout
        self._model = model
        self._rest = b""
        self._lines: deque[bytes] = deque()
        self._last_id = 0
        self._log: deque[str] = deque(maxlen=_LOG_LINES_KEPT)
        self._busy = False

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs, as far as is known without asking it."""
        return self._process.poll() is None

    async def ask(self, body: Mapping[str, Any]) -> int:
        """Send a question.

        Returns:
            Its id; `read` gives its answer.

        Raises:
            ChatModelError: The process is gone.
        """
        self._last_id += 1
        self._busy = True
        await self._write({"id": self._last_id, "body": body})
        return self._last_id

    async def cancel(self) -> None:
        """Stop the answer to the last question, within a token; its lines end with ``done``.

        Raises:
            ChatModelError: The process is gone.
        """
        if self._busy:
            await self._write({"cancel": self._last_id})

    async def settle(self) -> None:
        """Read until the last question is done with; cancelling is safe.

        Raises:
            ChatModelError: The process is gone.
        """
        while self._busy:
            await self.read()

    async def read(self) -> Line:
        """Return the next line; cancelling is safe, nothing is lost.

        Raises:
            ChatModelError: The process is gone, or writes what is no line of ours.
        """
        while not self._lines:
            chunk = await self._stdout.receive_some()
            if not chunk:
                raise self._gone()
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._lines.extend(lines)
            if len(self._rest) > _MAX_LINE_BYTES:
                raise ChatModelError("the worker sends a line without end", model=self._model)
        try:
            line = Line.model_validate_json(self._lines.popleft())
        except ValidationError as error:
            problem = "the worker sent something that is no line of its protocol"
            raise ChatModelError(problem, model=self._model) from error
        if line.done and line.id == self._last_id:
            self._busy = False
        return line

    async def become_ready(self) -> None:
        """Wait until the model is loaded.

        Raises:
            ChatModelError: It cannot be.
        """
        line = await self.read()
        if not line.ready:
            detail = " / ".join([line.error or "", *self._log])
            raise ChatModelError("the model cannot be loaded", model=self._model, detail=detail)

    async def copy_log(self) -> None:
        """Copy what the engine prints to the debug log, until it ends."""
        rest = b""
        if self._process.stderr is None:
            return
        with suppress(trio.ClosedResourceError):  # `end` closes it
            async for chunk in self._process.stderr:
                *lines, rest = (rest + chunk)[-_MAX_LINE_BYTES:].split(b"\n")
                for line in lines:
                    text = line.decode(errors="replace")
                    self._log.append(text)
                    _log.debug("llm_worker_log", pid=self.pid, pii_line=text)

    async def end(self) -> None:
        """End the process, by force if its input's end does not; it is reaped on return."""
        await self._stdin.aclose()
        with trio.move_on_after(_EXIT_S):
            await self._process.wait()
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        await self._stdout.aclose()
        if self._process.stderr is not None:
            await self._process.stderr.aclose()

    async def _write(self, message: Mapping[str, Any]) -> None:
        """Send one line, whole: half a line would garble the next."""
        data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        try:
            with trio.fail_after(_WRITE_S, shield=True):
                await self._stdin.send_all(data)
        except (trio.TooSlowError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise self._gone() from error

    def _gone(self) -> ChatModelError:
        problem = f"its worker process ended (exit code {self._process.poll()!r})"
        return ChatModelError(
            problem, model=self._model, retryable=True, detail=" / ".join(self._log)
        )


@asynccontextmanager
async def open_local_process(
    settings: Mapping[str, Any], *, model: str, start_timeout_s: float
) -> AsyncIterator[LocalProcess]:
    """Start a worker and wait until it has loaded its model; leaving the block ends it.

    Args:
        settings: What `_local_child.load` takes, but for the socket.
        model: The model's name, for errors.
        start_timeout_s: Limit for loading.

    Raises:
        ChatModelError: It cannot be loaded, or not in time.
    """
    with tempfile.TemporaryDirectory(prefix="bargein-", ignore_cleanup_errors=True) as folder:
        arguments = json.dumps({**settings, "socket": f"{folder}/llm.sock"})
        process = await trio.lowlevel.open_process(
            [sys.executable, "-P", str(_CHILD), arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,  # Ctrl+C is for the parent; this one ends with its input
            # A worker that spins while it waits starves every other process on few cores.
            env={"OMP_WAIT_POLICY": "PASSIVE", **os.environ},
        )
        worker = LocalProcess(process, model)
        failure: ChatModelError | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(worker.copy_log)
            try:
                failure = await _become_ready(worker, model, start_timeout_s)
                if failure is None:
                    yield worker
            finally:
                with trio.move_on_after(_END_S, shield=True):
                    await worker.end()
                nursery.cancel_scope.cancel(reason="the worker ended")
        if failure is not None:  # raised out here, so that no nursery wraps it
            raise failure


async def _become_ready(worker: LocalProcess, model: str, limit_s: float) -> ChatModelError | None:
    """Wait until the worker has loaded its model; return why it has not."""
    try:
        with trio.fail_after(limit_s):
            await worker.become_ready()
    except ChatModelError as error:
        return error
    except trio.TooSlowError:
        problem = f"not loaded within {limit_s:g} s (start_timeout_s sets the limit)"
        return ChatModelError(problem, model=model, retryable=True)
    return None
