"""Stops a process and everything it started: SIGINT, SIGTERM, SIGKILL, each with a time limit.

Rules:
1. A signal goes to every process of the session, as Ctrl+C does in a terminal; the next signal
   follows only while one of them is alive.
2. If the process ended by itself, the rest of its session is stopped too, starting with SIGTERM.
3. Stopping is shielded and bounded: it ends after the sum of its times, whatever the processes do.

A process started with ``start_new_session=True`` leads a session whose id is its pid. What it
starts belongs to that session, even in another process group, unless it opens a session of its own,
as a daemon does on purpose. Linux lists sessions in /proc; elsewhere only the leader's process
group is visible.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import trio

_TICKS_HZ = os.sysconf("SC_CLK_TCK") if sys.platform == "linux" else 0


@dataclass(frozen=True, slots=True)
class SessionProcess:
    """A snapshot of a process in a session."""

    pid: int
    name: bytes
    """The name of the program; it changes when the process runs another one."""
    parent: int
    is_zombie: bool
    """Whether it has ended and its parent has not read the exit code yet."""
    started_s: float
    """When it started, in seconds since boot, in steps of a clock tick (10 ms)."""


def _members(session: int) -> Iterator[SessionProcess]:
    """Yield the processes of a session, including zombies; Linux only."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError):  # it has ended since the folder was read
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:
                stat = file.read(4096)
            # proc_pid_stat(5): the name is in brackets and may itself hold brackets and spaces.
            begin, end = stat.index(b"(") + 1, stat.rindex(b")")
            state, parent, _, number, *rest = stat[end + 2 :].split()
            if int(number) == session:
                threads, started_s = int(rest[13]), int(rest[15]) / _TICKS_HZ
                # Its first thread may be dead while others run; then it cannot be waited for yet.
                is_zombie = state in (b"Z", b"X") and threads <= 1
                found = stat[begin:end], int(parent), is_zombie, started_s
                yield SessionProcess(int(name), *found)


LOOK_S = 0.02
"""How often to check whether the others of a session are gone, in seconds; a check takes a few
milliseconds in a thread."""
FORCE_LOOK_S = 0.05
"""How often to check whether to kill at once, in seconds."""
SPARE_S = 1.0
"""Extra time for the checks themselves on a busy machine, in seconds."""

Rung = Literal["itself", "SIGINT", "SIGTERM", "SIGKILL"]


@dataclass(frozen=True, slots=True)
class SignalLadder:
    """How long each signal may take, in seconds; 0 skips the signal."""

    int_s: float = 2.0
    """The time from SIGINT to SIGTERM."""
    term_s: float = 1.0
    """The time from SIGTERM to SIGKILL."""
    kill_s: float = 1.0
    """How long to check for survivors after SIGKILL; each is killed again."""

    @property
    def bound_s(self) -> float:
        """The longest that `stop_process` takes."""
        return self.int_s + self.term_s + self.kill_s + SPARE_S

    def __post_init__(self) -> None:
        for name in ("int_s", "term_s", "kill_s"):
            if not 0 <= (value := getattr(self, name)) <= 3600:
                raise ValueError(f"SignalLadder({name}={value!r}): give seconds from 0 to 3600")
        if self.kill_s == 0:
            raise ValueError("SignalLadder(kill_s=0): a sweep needs some time, give it 1 s")


DEFAULT_LADDER = SignalLadder()


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a process was stopped."""

    pid: int
    ended_by: Rung | None
    """The last signal sent before it ended; "itself" if it had already ended; ``None`` if it still
    runs, inside an uninterruptible system call."""
    swept: int
    """How many other processes of its session were killed."""
    left: int
    """How many processes were left when the time was over."""
    took_s: float


def never() -> bool:
    return False


async def stop_process(
    process: trio.Process,
    ladder: SignalLadder = DEFAULT_LADDER,
    *,
    is_forced: Callable[[], bool] = never,
) -> StopReport:
    """End a process and everything in its session, and reap it.

    It is shielded: cancelling has no effect, so clean-up code may call it.

    Args:
        process: Started with ``start_new_session=True``; it may have ended already.
        ladder: The time of each signal.
        is_forced: Called repeatedly; once it returns True, SIGKILL is next.

    Raises:
        ValueError: The process leads no session, so what it started cannot be found.
    """
    if process.poll() is None and not _leads_session(process.pid):
        raise ValueError(f"process {process.pid} must be started with start_new_session=True")
    termination = _Termination(process, is_forced)
    with trio.move_on_after(ladder.bound_s, shield=True):
        await termination.up(ladder)
    return termination.report()


class Descendants:
    """The processes that a process starts from now on, which can be stopped without it.

    Linux only: elsewhere start times are unknown, and nothing happens.
    """

    def __init__(self, process: trio.Process) -> None:
        self._process = process
        self._since_s = 0.0
        if sys.platform == "linux":
            ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_HZ)
            self._since_s = ticks / _TICKS_HZ  # the earliest `started_s` of what starts now
        self._interrupted: set[tuple[int, bytes]] = set()

    async def interrupt(self) -> None:
        """Send SIGINT once to each program; to many programs a second one means to exit at once."""
        termination = _Termination(
            self._process,
            is_meant=lambda m: self._is_ours(m) and (m.pid, m.name) not in self._interrupted,
        )
        found = await termination.strike(signal.SIGINT)
        self._interrupted.update((member.pid, member.name) for member in found)

    async def stop(self, ladder: SignalLadder) -> None:
        """Stop them all with SIGTERM and SIGKILL; shielded and bounded, like `stop_process`."""
        termination = _Termination(self._process, is_meant=self._is_ours)
        with trio.move_on_after(ladder.bound_s, shield=True):
            if await termination.strike(0):
                await termination.rung("SIGTERM", ladder.term_s)
                await termination.kill(ladder.kill_s)

    def _is_ours(self, member: SessionProcess) -> bool:
        return member.pid != self._process.pid and member.started_s >= self._since_s


class _Termination:
    """One termination of a process: the signals in turn, each with its time."""

    def __init__(
        self,
        process: trio.Process,
        is_forced: Callable[[], bool] = never,
        is_meant: Callable[[SessionProcess], bool] | None = None,
    ) -> None:
        self._process = process
        self._is_forced = is_forced
        self._is_meant = is_meant
        self._started_s = trio.current_time()
        self._ended_by: Rung | None = None
        self._killed: set[int] = set()
        self._left = 1

    async def up(self, ladder: SignalLadder) -> None:
        """Send the signals as needed, waiting after each."""
        self._note("itself")
        if self._ended_by is None:
            await self.rung("SIGINT", ladder.int_s)
        await self.rung("SIGTERM", ladder.term_s)
        await self.kill(ladder.kill_s)

    async def rung(self, name: Literal["SIGINT", "SIGTERM"], limit_s: float) -> None:
        """Send one signal; wait until all are gone, the time is over, or a kill is forced."""
        if limit_s == 0 or self._is_forced() or not await self.strike(signal.Signals[name]):
            return
        with trio.move_on_after(limit_s):
            await self._until_gone(0)
        self._note(name)

    async def kill(self, limit_s: float) -> None:
        """Kill the rest, and what it has started meanwhile, until nothing is left."""
        if self._left:
            with trio.move_on_after(limit_s):
                await self._until_gone(signal.SIGKILL)
        self._note("SIGKILL")

    async def strike(self, number: int) -> list[SessionProcess]:
        """Signal the live processes that are meant, and return them; 0 only finds them."""
        is_reaped = self._process.poll() is not None
        found = await trio.to_thread.run_sync(self._signal, number, is_reaped)  # reads many files
        self._left = len(found)
        if number == signal.SIGKILL:
            self._killed.update(member.pid for member in found)
        return found

    def _signal(self, number: int, is_reaped: bool) -> list[SessionProcess]:
        leader = self._process.pid
        if sys.platform != "linux":  # where processes of a group cannot be told apart
            if self._is_meant is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(leader, number)
                    return [SessionProcess(leader, b"", 0, is_zombie=False, started_s=0.0)]
            return []
        found = [*_members(leader)]
        if is_reaped and any(member.pid == leader for member in found):
            return []  # an unrelated process has got its pid
        struck = []
        for member in found:
            if not member.is_zombie:
                if self._is_meant is None or self._is_meant(member):
                    struck.append(member)
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(member.pid, number)
            elif member.parent == os.getpid() and member.pid != leader:
                # An orphan that became our child, because we are process 1 or a subreaper.
                with suppress(ChildProcessError):
                    os.waitpid(member.pid, os.WNOHANG)
        return struck

    def report(self) -> StopReport:
        """Return how the process was stopped."""
        took_s = trio.current_time() - self._started_s
        swept = len(self._killed - {self._process.pid})
        return StopReport(self._process.pid, self._ended_by, swept, self._left, took_s)

    async def _until_gone(self, number: int) -> None:
        """Signal all live processes again and again until none is left; 0 only checks."""
        while number or not self._is_forced():
            if not number and self._is_meant is None and self._process.poll() is None:
                with trio.move_on_after(FORCE_LOOK_S):
                    await self._process.wait()
            elif await self.strike(number):
                await trio.sleep(LOOK_S)
            else:
                return

    def _note(self, rung: Rung) -> None:
        if self._ended_by is None and self._process.poll() is not None:
            self._ended_by = rung


def _leads_session(pid: int) -> bool:
    try:
        return os.getsid(pid) == pid
    except ProcessLookupError:
        return True  # it has just ended
