"""A Python worker: a process that runs plain functions, one at a time, and lives on between them.

Rules:
1. An interrupt does nothing to a worker that is idle.
2. A busy one gets SIGINT for the call that runs; its late result is drained and dropped by the
   call's number, and the worker keeps its variables.
3. Only one that is deaf to SIGINT is ended and replaced; `generation` rises, and the next call is
   told that the state is lost.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Literal, Self

import structlog
import trio

from nodes.processes import (
    DEFAULT_LADDER,
    SPARE_S,
    Ladder,
    OnOutput,
    Stream,
    boot_clock_s,
    interrupt_younger,
    never,
    stop_younger,
)
from routes._contain import CONTAINED

from ._errors import (
    WorkerCallError,
    WorkerDiedError,
    WorkerError,
    WorkerInterruptedError,
)
from ._reference import reference_of
from ._worker_process import WorkerProcess, start_worker

_log = structlog.get_logger()
START_S = 30.0
"""For a Python that imports nothing: a hundred times what it takes on an idle machine."""
REPEAT_S = 0.1
"""A SIGINT is lost while C code ignores it, as system(3) does, and a command that a shell starts
right after it has not got it; so it is sent again."""


class WorkerState(Enum):
    """What a worker is at."""

    STARTING = "starting"
    IDLE = "idle"
    BUSY = "busy"
    DRAINING = "draining"
    """Its call was cancelled: it is waited for the end of the function."""
    DEAD = "dead"
    """There is no process; the next call starts one."""


@dataclass(frozen=True, slots=True)
class CallReport:
    """What a call of a function returned."""

    value: Any
    """As JSON holds it: a tuple became a list, a model or dataclass a dict, bytes base64."""
    call_id: str
    generation: int
    """The worker's: 1 for its first process."""
    state_lost: bool
    """Whether the worker was replaced since the last call, so that its variables are gone."""
    ran_s: float


class PythonWorker:
    """One worker process; open it, then call functions."""

    def __init__(
        self,
        name: str = "worker",
        *,
        ladder: Ladder = DEFAULT_LADDER,
        start_s: float = START_S,
        cwd: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Keep the settings; the first call starts the process.

        Args:
            name: What it is called in logs and errors.
            ladder: `int_s` is how long a function may take to end after SIGINT; the rest is how a
                deaf one is ended.
            start_s: Seconds that a process may take until it is ready.
            cwd: Its folder; ``None`` for ours.
            env: Variables beside ours, or instead of them.
        """
        self.name = name
        self._ladder = ladder
        self._start_s = start_s
        self._cwd = cwd
        self._env = env
        self._nursery: trio.Nursery | None = None
        self._turn = trio.Lock()
        self._process: WorkerProcess | None = None
        self._state = WorkerState.DEAD
        self._generation = 0
        self._is_state_lost = False
        self._number = 0
        self._listener: OnOutput | None = None

    @property
    def state(self) -> WorkerState:
        """What it is at."""
        return self._state

    @property
    def generation(self) -> int:
        """How many processes it has had, 0 before the first call."""
        return self._generation

    @property
    def pid(self) -> int | None:
        """The number of its process, ``None`` while there is none."""
        return self._process.pid if self._process is not None else None

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Let calls be made within the block; leaving it ends the process and all it has started.

        A call that other tasks still wait for is given the time of the ladder to end.

        Raises:
            WorkerError: It is open already.
        """
        if self._nursery is not None:
            raise WorkerError(f"the worker {self.name!r} is open already")
        failure: Exception | None = None
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                yield self
            except Exception as error:  # noqa: BLE001 - raised below, where no nursery wraps it
                failure = error
            finally:
                self._nursery = None
                with trio.move_on_after(2 * self._ladder.bound_s + SPARE_S, shield=True):
                    await self._close()
                nursery.cancel_scope.cancel(reason="the worker was closed")
        if failure is not None:
            raise failure

    async def call(
        self,
        function: Callable[..., Any] | str,
        kwargs: Mapping[str, Any] | None = None,
        *,
        call_id: str = "",
        on_output: OnOutput | None = None,
        is_forced: Callable[[], bool] = never,
    ) -> Any:
        """Call a function in the worker and return its value; see `run`."""
        report = await self.run(
            function, kwargs, call_id=call_id, on_output=on_output, is_forced=is_forced
        )
        return report.value

    async def run(
        self,
        function: Callable[..., Any] | str,
        kwargs: Mapping[str, Any] | None = None,
        *,
        call_id: str = "",
        on_output: OnOutput | None = None,
        is_forced: Callable[[], bool] = never,
    ) -> CallReport:
        """Call a function in the worker, when those that were called before are done.

        Cancelling interrupts the function, and raises ``Cancelled`` once it has ended or the
        worker was replaced, which takes at most the sum of the ladder's times and a second.
        Nothing happens to the worker if the function had not begun.

        Args:
            function: A plain function that a process can import, or its path "module:qualname".
            kwargs: Its arguments; they are pickled.
            call_id: For logs and the report.
            on_output: Called with stream and text of what the function writes.
            is_forced: Asked while it is interrupted; True means that the worker is killed at once.

        Returns:
            What it returned, and whether the worker was a new one.

        Raises:
            WorkerCallError: The function raised, or JSON cannot hold its value.
            WorkerInterruptedError: `interrupt` was called.
            WorkerDiedError: The process ended before the function did.
            WorkerStartError: It does not start.
            WorkerError: It is not open.
            ValueError: The function has no name by which a process can import it.
            TypeError: The arguments cannot be pickled.
        """
        payload = _pack(function, dict(kwargs or {}))
        async with self._turn:
            process = await self._ready()
            state_lost, self._is_state_lost = self._is_state_lost, False
            began_s = trio.current_time()
            self._listener = on_output
            try:
                answer = await self._ask(process, payload, call_id, is_forced)
            finally:
                self._listener = None
            ran_s = trio.current_time() - began_s
            if "error" in answer:
                raise _error(answer["error"], state_lost)
            return CallReport(answer.get("value"), call_id, self._generation, state_lost, ran_s)

    def interrupt(self) -> bool:
        """Interrupt the function that runs, in this step; it then raises KeyboardInterrupt.

        A function that ends anyhow returns its value.  To be sure that it ends, cancel the call.

        Returns:
            False if none runs: nothing is sent then.
        """
        if self._state is not WorkerState.BUSY or self._process is None:
            return False
        self._process.interrupt(self._number)
        return True

    async def _close(self) -> None:
        """End the process, after the call that is being cancelled, if there is one."""
        with trio.move_on_after(self._ladder.bound_s):
            await self._turn.acquire()
            self._turn.release()
        await self._discard("closed")

    async def _ready(self) -> WorkerProcess:
        """Return a process that is idle; start one if there is none."""
        if self._nursery is None:
            raise WorkerError(
                f"the worker {self.name!r} is not open: use `async with worker.open():`"
            )
        if self._process is not None and self._process.is_alive:
            return self._process
        await self._discard("died")
        self._state = WorkerState.STARTING
        try:
            self._process = await start_worker(
                self.name,
                self._on_text,
                self._nursery,
                limit_s=self._start_s,
                cwd=self._cwd,
                env=self._env,
            )
        finally:
            self._state = WorkerState.DEAD if self._process is None else WorkerState.IDLE
        self._generation += 1
        _log.debug(
            "worker_started", worker=self.name, pid=self._process.pid, generation=self._generation
        )
        return self._process

    async def _ask(
        self, process: WorkerProcess, payload: bytes, call_id: str, is_forced: Callable[[], bool]
    ) -> dict[str, Any]:
        self._number += 1
        self._state = WorkerState.BUSY
        since_s = boot_clock_s()
        try:
            await process.send(self._number, payload)
            answer = await process.answer(self._number)
        except trio.Cancelled:
            with trio.move_on_after(2 * self._ladder.bound_s + SPARE_S, shield=True):
                await self._stop_call(process, call_id, since_s, is_forced)
            raise
        except WorkerDiedError as error:
            failure = error
        else:
            self._state = WorkerState.IDLE
            process.drain()
            return answer
        await self._discard("died", is_forced)
        raise failure

    async def _stop_call(
        self, process: WorkerProcess, call_id: str, since_s: float, is_forced: Callable[[], bool]
    ) -> None:
        """Interrupt the function and drop its result; replace the process if it does not end."""
        self._state = WorkerState.DRAINING
        if await self._drain(process, since_s, is_forced):
            swept = await stop_younger(process.process, self._ladder, since_s)
            process.drain()
            self._state = WorkerState.IDLE
            _log.debug("worker_call_stopped", worker=self.name, call_id=call_id, swept=swept)
            return
        await self._discard("deaf", is_forced)

    async def _drain(
        self, process: WorkerProcess, since_s: float, is_forced: Callable[[], bool]
    ) -> bool:
        """Send SIGINT until the function has ended; return whether it did in time."""
        with trio.move_on_after(self._ladder.int_s, shield=True):
            interrupted: set[tuple[int, bytes]] = set()
            while not is_forced():
                process.interrupt(self._number)
                # Each program once: for many the second SIGINT means at once.
                interrupted |= await interrupt_younger(process.process, since_s, interrupted)
                with trio.move_on_after(REPEAT_S):
                    return await self._drop_answer(process)
        return False

    async def _drop_answer(self, process: WorkerProcess) -> bool:
        try:
            answer = await process.answer(self._number)
        except WorkerDiedError:
            return False
        _log.debug("worker_result_dropped", worker=self.name, had_value="value" in answer)
        return True

    async def _discard(
        self, why: Literal["closed", "died", "deaf"], is_forced: Callable[[], bool] = never
    ) -> None:
        """End the process, if there is one; what it kept is lost."""
        process, self._process = self._process, None
        if process is None:
            return
        self._state = WorkerState.DEAD
        self._is_state_lost = True
        report = await process.end(replace(self._ladder, int_s=0), is_forced)
        log = _log.debug if why == "closed" else _log.warning
        log(
            "worker_ended",
            worker=self.name,
            why=why,
            pid=report.pid,
            ended_by=report.ended_by,
            swept=report.swept,
            generation=self._generation,
            state_lost=True,
        )

    def _on_text(self, stream: Stream, text: str) -> None:
        if self._listener is None:
            _log.debug("worker_writes", worker=self.name, stream=stream, pii_text=text)
            return
        try:
            with CONTAINED:
                self._listener(stream, text)
        except Exception as error:  # noqa: BLE001 - a listener's fault must not end the worker
            error_class = type(error).__name__
            _log.warning(
                "worker_listener_failed",
                worker=self.name,
                error=error_class,
                pii_error=str(error),
            )


def _pack(function: Callable[..., Any] | str, kwargs: dict[str, Any]) -> bytes:
    reference = pickle.dumps(reference_of(function))
    try:
        return reference + pickle.dumps(kwargs, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise TypeError(f"the arguments of {function!r} cannot be pickled: {error}") from error


def _error(told: Any, state_lost: bool) -> WorkerCallError:
    class_name, text, traceback_text = map(str, told)
    kind = WorkerInterruptedError if class_name == "KeyboardInterrupt" else WorkerCallError
    return kind(class_name, text, traceback_text, state_lost)
