"""The parent of a server's workers: it listens, loads nothing, and starts, watches and restarts.

Rule 1. A worker that ends is started again, after 0.5 s and up to 30 s; after five ends within
30 s the parent gives up, with the worker's own error.
Rule 2. A worker that does not answer for two seconds hangs, and is killed.
Rule 3. SIGHUP starts each worker anew, one by one: the old one stops listening once the new one
accepts calls, gives its calls away, and ends when the others are over.  A worker that gets SIGTERM
has a successor started, and does the same.
Rule 4. What counts for all workers is counted here, and given back when a worker ends.
"""

from __future__ import annotations

import math
import os
import signal
import socket
import subprocess
import sys
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import final

import trio

from bargein.routes import BargeinError
from bargein.routes.error_containment import only_error
from bargein.routes.logs import get_logger

from ...stopping._stop_signals import StopSignals
from ...wires._metrics import Metrics
from ...wires._server_limits import Limits
from .._connections_per_address import Reserved
from .._listening_sockets import address_of, open_listeners
from .._run_server import FORCE_S
from .._sharing import Alone
from ._channel import Channel, ChannelMessage
from ._worker import WorkerStart
from ._worker_metrics import counters_of, summed

PING_S = 1.0
"""How often a worker is asked whether it lives, in seconds."""

PINGS = 2
"""How many of these it may leave unanswered."""

LEAVE_S = 0.2
"""How many seconds a worker that was told to end waits for its parent to be told so, too: service
managers stop all processes of a service at once."""

FIRST_DELAY_S, LONGEST_DELAY_S = 0.5, 30.0
"""How many seconds a successor waits: twice as many as the last one, if that lasted below 30 s."""

MOST_ENDS, ENDS_S = 5, 30.0
"""After how many ends within how many seconds the parent gives up."""

log = get_logger()


class WorkersFailedError(BargeinError):
    """The workers end again and again, or do not start; the message says why."""


@final
@dataclass(eq=False)
class _WorkerProcess:
    """One process, and what it has taken."""

    number: int
    slot: int
    process: subprocess.Popen[bytes]
    channel: Channel
    is_ready: trio.Event = field(default_factory=trio.Event)
    is_over: trio.Event = field(default_factory=trio.Event)
    ready_at_s: float = math.inf
    is_retiring: bool = False
    is_trial: bool = False
    """Whether it takes the place of one that goes on if this one does not start."""
    accepts: bool = True
    is_overloaded: bool = False
    pings: int = 0
    """How many it has not answered."""
    why: str = ""
    """Why it could not start."""
    numbers: str = ""
    calls: set[str] = field(default_factory=set)
    known_calls: set[str] = field(default_factory=set)
    """Also those that are over, and whose clients may come back for their ends."""
    taken: Counter[tuple[str, Reserved]] = field(default_factory=Counter)
    late: Counter[str | None] = field(default_factory=Counter)

    @property
    def takes_calls(self) -> bool:
        """Whether it answers new calls."""
        return self.is_ready.is_set() and not self.is_retiring and not self.is_over.is_set()


def run_workers(
    arguments: Sequence[str],
    count: int,
    *,
    variable: str,
    host: str,
    port: int,
    limits: Limits,
    token: str | None = None,
    max_memory_mb: float | None = None,
    cluster: str | None = None,
    scheme: str = "http",
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve with several workers until SIGINT or SIGTERM, then let them drain.

    A second signal closes them at once.  SIGHUP starts each anew, one by one.

    Args:
        arguments: Those of the command line, which a worker runs too.
        count: How many workers.
        variable: The variable of the environment that tells a worker what it is.
        host: The address to listen on.
        port: The TCP port; 0 picks a free one.
        limits: The server's; what they allow is for all workers together.
        token: A token for callers that the workers ask for; ``None`` for no more than the
            arguments say.
        max_memory_mb: Above how many megabytes a worker takes no new calls.
        cluster: The address of a Redis that keeps the calls; ``None`` keeps them on this machine.
        scheme: That of the address that is told.
        on_ready: Called with that address once the first worker accepts calls.

    Raises:
        OSError: The address cannot be listened on.
        WorkersFailedError: The workers end again and again.
    """

    async def main() -> None:
        listeners = await open_listeners(host, port)
        where, free = address_of(listeners)
        # Only its owner may read it: what people say is in it while calls last.
        folder = TemporaryDirectory(prefix="bargein-", ignore_cleanup_errors=True)
        start = WorkerStart(
            number=0,
            parent=os.getpid(),
            channel=0,
            listeners=[one.socket.fileno() for one in listeners],
            is_first=True,
            token=token,
            journals=str(Path(folder.name) / "journals.sqlite"),
            max_memory_mb=max_memory_mb,
            cluster=cluster,
        )
        parent = Parent(
            arguments,
            count,
            limits,
            variable,
            start,
            lambda: on_ready(f"{scheme}://{where}:{free}/"),
        )
        signals = StopSignals(parent.obey)
        try:
            with signals.heard():
                await parent.run(signals)
        finally:
            folder.cleanup()
            for listener in listeners:
                listener.socket.close()

    try:
        trio.run(main)
    except BaseExceptionGroup as group:
        raise only_error(group) from group


@final
class Parent:
    """Starts workers, and counts for them."""

    def __init__(
        self,
        arguments: Sequence[str],
        count: int,
        limits: Limits,
        variable: str,
        start: WorkerStart,
        on_ready: Callable[[], None],
    ) -> None:
        """Prepare; ``run()`` starts.

        Args:
            arguments: Those of the command line.
            count: How many workers.
            limits: What all workers together may do.
            variable: The variable of the environment that tells a worker what it is.
            start: What each worker gets, but for its number and its channel.
            on_ready: Called once the first worker accepts calls.
        """
        self._arguments = arguments
        self._count = count
        self._limits = limits
        self._variable = variable
        self._start = start
        self._on_ready = on_ready
        self._metrics = Metrics()
        self._shared = Alone(limits, self._metrics)
        self._workers: set[_WorkerProcess] = set()
        self._current: dict[int, _WorkerProcess] = {}
        self._started = 0
        self._delays_s = dict.fromkeys(range(count), FIRST_DELAY_S)
        self._ends_s: deque[float] = deque(maxlen=MOST_ENDS)
        self._past_numbers = ""
        self._was_ready = False
        self._is_rolling = False
        self._stopping = trio.Event()
        self._all_over = trio.Event()
        self._failure = ""
        self._nursery: trio.Nursery | None = None
        self._signals: StopSignals | None = None

    async def run(self, signals: StopSignals) -> None:
        """Run until a signal stops it, and all workers have ended.

        Args:
            signals: Passes the signals to ``obey()``, and gets the limit of an orderly stop.

        Raises:
            WorkersFailedError: They end again and again.
        """
        self._signals = signals
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._ping)
                self._start_worker(0)  # the others start once it is ready
                await self._all_over.wait()
                nursery.cancel_scope.cancel(reason="all workers have ended")
        finally:
            for worker in self._workers:
                worker.process.kill()
                worker.process.wait()
        if self._failure:
            raise WorkersFailedError(self._failure)

    # --- signals --------------------------------------------------------------------------------

    def obey(self, number: int) -> None:
        """Stop, close by force, or start all workers anew."""
        name = signal.Signals(number).name
        if number == getattr(signal, "SIGHUP", None):
            assert self._nursery is not None
            self._nursery.start_soon(self._roll)
        elif not self._stopping.is_set():
            log.info("stopping", signal=name)
            self._stop()
        else:
            log.warning("stopping_by_force", signal=name)
            for worker in self._workers:
                worker.process.terminate()

    def _stop(self) -> None:
        assert self._nursery is not None
        assert self._signals is not None
        self._stopping.set()
        self._signals.limit(self._limits.drain_s + 2 * FORCE_S)
        for worker in self._workers:
            worker.process.terminate()
        self._nursery.start_soon(self._kill_later)
        self._finish()

    def _finish(self) -> None:
        if self._stopping.is_set() and not self._workers:
            self._all_over.set()

    async def _kill_later(self) -> None:
        await trio.sleep(self._limits.drain_s + FORCE_S)
        for worker in self._workers:
            worker.process.kill()

    # --- starting -------------------------------------------------------------------------------

    def _start_worker(self, slot: int, is_trial: bool = False) -> _WorkerProcess:
        """Start a worker."""
        assert self._nursery is not None
        ours, theirs = socket.socketpair()
        self._started += 1
        number = self._started
        start = self._start.model_copy(
            update={"number": number, "channel": theirs.fileno(), "is_first": not self._was_ready}
        )
        try:
            # In this thread: a worker ends with the thread that has started it (prctl(2)).
            process = subprocess.Popen(
                [sys.executable, "-m", "bargein", *self._arguments],
                stdin=subprocess.DEVNULL,
                env={**os.environ, self._variable: start.model_dump_json()},
                pass_fds=[theirs.fileno(), *start.listeners],
                process_group=0,  # a terminal's signals are for the parent
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        worker = _WorkerProcess(number, slot, process, Channel(ours), is_trial=is_trial)
        self._workers.add(worker)
        self._current.setdefault(slot, worker)
        log.info("worker_started", worker=number, pid=process.pid)
        self._nursery.start_soon(self._watch, worker)
        if self._stopping.is_set():
            process.terminate()
        return worker

    async def _watch(self, worker: _WorkerProcess) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(
                worker.channel.run, partial(self._handle, worker), partial(self._asked, worker)
            )
            code = await _exit_of(worker.process)
            with trio.move_on_after(PING_S):  # what it said last
                await worker.channel.over.wait()
            nursery.cancel_scope.cancel(reason="the worker has ended")
        self._release(worker)
        expected = self._stopping.is_set() or worker.is_retiring
        if expected:
            log.info("worker_ended", worker=worker.number, code=_described(code))
        else:
            log.error("worker_ended", worker=worker.number, code=_described(code))
        if self._current.get(worker.slot) is worker:
            del self._current[worker.slot]
            is_tried = worker.is_trial and not worker.is_ready.is_set()
            if not (self._stopping.is_set() or is_tried):
                await self._replace(worker, code)
        self._finish()

    def _release(self, worker: _WorkerProcess) -> None:
        for call_id in tuple(worker.calls):
            self._give_back_call(worker, call_id)
        for (address, budget), count in worker.taken.items():
            for _ in range(count):
                self._shared.give_back(address, budget)
        for late, count in worker.late.items():
            for _ in range(count):
                self._shared.give_back_late(late)
        self._past_numbers = summed((self._past_numbers, counters_of(worker.numbers)))
        self._workers.discard(worker)
        worker.is_over.set()
        self._share_out()

    def _give_back_call(self, worker: _WorkerProcess, call_id: str) -> None:
        worker.calls.discard(call_id)
        if not any(call_id in one.calls for one in self._workers):  # another may have taken it
            self._shared.give_back_call(call_id)

    async def _replace(self, worker: _WorkerProcess, code: int) -> None:
        now_s = trio.current_time()
        why = worker.why or f"the last one ended with {_described(code)}"
        if not self._was_ready:
            self._give_up(f"the first worker does not start: {why}")
            return
        self._ends_s.append(now_s)
        if len(self._ends_s) == MOST_ENDS and now_s - self._ends_s[0] <= ENDS_S:
            self._give_up(f"{MOST_ENDS} workers ended within {ENDS_S:.0f} s: {why}")
            return
        delay_s = self._delays_s[worker.slot]
        if now_s - worker.ready_at_s >= LONGEST_DELAY_S:
            delay_s = FIRST_DELAY_S
        self._delays_s[worker.slot] = min(2 * delay_s, LONGEST_DELAY_S)
        await self._start_later(worker.slot, delay_s)

    async def _start_later(self, slot: int, delay_s: float = 0.0) -> None:
        """Start a worker after some seconds, and again after more if that fails."""
        while True:
            with trio.move_on_after(delay_s):
                await self._stopping.wait()
            if self._stopping.is_set() or slot in self._current:  # a restart was quicker
                return
            try:
                self._start_worker(slot)
                return
            except OSError as error:  # no room for a process
                log.error("worker_not_started", error=str(error))
                delay_s = LONGEST_DELAY_S

    def _give_up(self, why: str) -> None:
        self._failure = why
        self._stop()

    async def _roll(self) -> None:
        """Start each worker anew, one after the other."""
        if self._is_rolling or self._stopping.is_set():
            log.warning("restart_runs_already")
            return
        self._is_rolling = True
        try:
            for slot in range(self._count):
                old = self._current.pop(slot, None)
                try:
                    new = self._start_worker(slot, is_trial=True)
                except OSError as error:
                    log.error("worker_not_started", error=str(error))
                    self._keep(old, slot)
                    return
                await _first(new.is_ready, new.is_over, self._stopping)
                if self._stopping.is_set():
                    return
                if not new.is_ready.is_set():
                    # The new version does not start; the workers that are left go on.
                    log.error("restart_failed", worker=new.number, why=new.why)
                    self._keep(old, slot)
                    return
                if old is not None and not old.is_over.is_set():
                    old.is_retiring = True
                    old.channel.send("retire")
        finally:
            self._is_rolling = False

    def _keep(self, old: _WorkerProcess | None, slot: int) -> None:
        """Let the worker of a place go on; start one if it has ended meanwhile."""
        assert self._nursery is not None
        if old is None or old.is_over.is_set() or old.is_retiring:
            self._nursery.start_soon(self._start_later, slot)
        else:
            self._current[slot] = old

    async def _let_go(self, worker: _WorkerProcess) -> bool:
        """Start the successor of a worker that was told to end; False if all are to end."""
        assert self._nursery is not None
        await trio.sleep(LEAVE_S)
        if self._stopping.is_set():
            return False
        if not worker.is_retiring:
            worker.is_retiring = True
            self._share_out()
            if self._current.get(worker.slot) is worker:
                del self._current[worker.slot]
                self._nursery.start_soon(self._start_later, worker.slot)
        return True

    # --- what workers say -----------------------------------------------------------------------

    async def _ping(self) -> None:
        while True:
            await trio.sleep(PING_S)
            for worker in tuple(self._workers):
                if not worker.is_ready.is_set():
                    continue
                if worker.pings >= PINGS:
                    log.error("worker_hangs", worker=worker.number)
                    worker.process.kill()
                else:
                    worker.pings += 1
                    worker.channel.send("ping")

    def _handle(self, worker: _WorkerProcess, message: ChannelMessage, file: int | None) -> None:
        match message["kind"]:
            case "ready":
                self._handle_ready(worker)
            case "pong":
                worker.pings = 0
                worker.numbers = message["numbers"]
                if worker.is_overloaded != message["is_overloaded"]:
                    worker.is_overloaded = message["is_overloaded"]
                    log.warning(
                        "worker_load", worker=worker.number, overloaded=worker.is_overloaded
                    )
                self._share_out()
            case "numbers":
                worker.numbers = message["numbers"]
            case "failed":
                worker.why = message["why"]
            case "give_back_call":
                self._give_back_call(worker, message["call_id"])
                self._share_out()
            case "forget_call":
                worker.known_calls.discard(message["call_id"])
            case "give_back":
                self._shared.give_back(message["address"], message["budget"])
                worker.taken[message["address"], message["budget"]] -= 1
            case "give_back_late":
                self._shared.give_back_late(message["address"])
                worker.late[message["address"]] -= 1
            case "resumed" if file is not None:
                owner = self._owner_of(message["resumed"]["call_id"])
                if owner is None:
                    os.close(file)
                else:
                    owner.channel.send("resumed", file, resumed=message["resumed"])

    def _handle_ready(self, worker: _WorkerProcess) -> None:
        assert self._nursery is not None
        worker.is_ready.set()
        worker.ready_at_s = trio.current_time()
        if not self._was_ready:
            self._was_ready = True
            self._on_ready()
            for slot in range(1, self._count):
                self._nursery.start_soon(self._start_later, slot)
        self._share_out()

    def _owner_of(self, call_id: str) -> _WorkerProcess | None:
        return next((one for one in self._workers if call_id in one.known_calls), None)

    async def _asked(self, worker: _WorkerProcess, message: ChannelMessage) -> object:
        match message["kind"]:
            case "has_call_room":
                return await self._shared.has_call_room()
            case "reserve_call":
                taken = await self._shared.reserve_call(message["call_id"])
                if taken:
                    worker.calls.add(message["call_id"])
                    worker.known_calls.add(message["call_id"])
                    self._share_out()
                return taken
            case "may_knock":
                return await self._shared.may_knock(message["address"])
            case "may_send_signed":
                return await self._shared.may_send_signed(message["address"])
            case "has_room":
                return await self._shared.has_room(message["address"], message["budget"])
            case "reserve":
                taken = await self._shared.reserve(message["address"], message["budget"])
                worker.taken[message["address"], message["budget"]] += taken
                return taken
            case "reserve_late":
                taken = await self._shared.reserve_late(message["address"])
                worker.late[message["address"]] += taken
                return taken
            case "has_call":
                return self._owner_of(message["call_id"]) is not None
            case "leave":
                return await self._let_go(worker)
            case "calls":
                return {f"worker {one.number}": sorted(one.calls) for one in self._workers}
            case "letter":
                owner = self._owner_of(message["call_id"])
                if owner is None:
                    return None
                asked = {name: message[name] for name in ("call_id", "letter")}
                return await owner.channel.ask("letter", **asked)
            case "numbers":
                return await self._all_numbers()
        return None

    async def _all_numbers(self) -> str:
        async def refresh(worker: _WorkerProcess) -> None:
            numbers = await worker.channel.ask("numbers")
            worker.numbers = numbers or worker.numbers

        async with trio.open_nursery() as nursery:
            for worker in self._workers:
                if worker.is_ready.is_set():
                    nursery.start_soon(refresh, worker)
        own = self._metrics.exposition()
        return summed((self._past_numbers, own, *(one.numbers for one in self._workers)))

    def _share_out(self) -> None:
        """Let the workers below their share accept connections; all, if none is below."""
        takers = [one for one in self._workers if one.takes_calls]
        share = math.ceil(self._limits.max_calls / self._count)
        free = [one for one in takers if len(one.calls) < share and not one.is_overloaded]
        for worker in takers:
            accepts = not free or worker in free
            if accepts != worker.accepts:
                worker.accepts = accepts
                worker.channel.send("accept", on=accepts)


async def _first(*events: trio.Event) -> None:
    """Wait for one of several events."""

    async def wait(event: trio.Event) -> None:
        await event.wait()
        nursery.cancel_scope.cancel(reason="one has happened")

    async with trio.open_nursery() as nursery:
        for event in events:
            nursery.start_soon(wait, event)


async def _exit_of(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a process, and return its exit code.  Cancelling this is safe."""
    if sys.platform == "linux":
        end = os.pidfd_open(process.pid)
        try:
            await trio.lowlevel.wait_readable(end)
        finally:
            os.close(end)
        return process.wait()
    return await trio.to_thread.run_sync(process.wait, abandon_on_cancel=True)


def _described(code: int) -> str:
    if code < 0:
        return signal.Signals(-code).name
    return f"exit code {code}"
