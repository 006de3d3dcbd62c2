"""Finds the processes of a session and signals them.

A process started with ``start_new_session=True`` leads a session whose id is its pid. What it
starts belongs to that session, even in another process group, unless it opens a session of its own,
as a daemon does on purpose.

Linux lists sessions in /proc. Elsewhere only the leader's process group is visible.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

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


def strike(
    session: int,
    number: int,
    *,
    leader_is_reaped: bool,
    is_meant: Callable[[SessionProcess], bool] | None = None,
) -> list[SessionProcess]:
    """Send a signal to each live process of a session, and reap our ended orphans.

    Args:
        session: The id of the session, which is the pid of its leader.
        number: The signal; 0 sends nothing and only finds the processes.
        leader_is_reaped: Whether the leader has ended and its exit code was read. A process with
            that pid is then unrelated, and so is its session.
        is_meant: Returns whether a process gets the signal; ``None`` signals all. Where only the
            group is visible, processes cannot be told apart, and nothing is sent.

    Returns:
        The processes that were alive and meant.
    """
    if sys.platform != "linux":
        return [] if is_meant is not None else _strike_group(session, number)
    found = members(session)
    if leader_is_reaped and any(member.pid == session for member in found):
        return []
    struck = []
    for member in found:
        if member.is_zombie:
            _reap(member, session)
        elif is_meant is None or is_meant(member):
            struck.append(member)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(member.pid, number)
    return struck


def members(session: int) -> list[SessionProcess]:
    """Return the processes of a session, including zombies; Linux only."""
    return [member for number, member in _scan() if number == session]


def boot_clock_s() -> float:
    """Return the earliest `SessionProcess.started_s` of a process that starts now."""
    if sys.platform != "linux":
        return 0.0
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_HZ) / _TICKS_HZ


def _strike_group(group: int, number: int) -> list[SessionProcess]:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return []
    return [SessionProcess(group, b"", 0, is_zombie=False, started_s=0.0)]


def _reap(member: SessionProcess, session: int) -> None:
    """Reap an orphan that became our child, because we are process 1 or a subreaper."""
    if member.parent == os.getpid() and member.pid != session:
        with suppress(ChildProcessError):
            os.waitpid(member.pid, os.WNOHANG)


def _scan() -> Iterator[tuple[int, SessionProcess]]:
    """Yield the session id and a snapshot of each process."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):  # it has ended since the folder was read
                yield _parse(int(name), _read(f"/proc/{name}/stat"))


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _parse(pid: int, stat: bytes) -> tuple[int, SessionProcess]:
    # proc_pid_stat(5): the name is in brackets and may itself hold brackets and spaces.
    begin, end = stat.index(b"(") + 1, stat.rindex(b")")
    state, parent, _, session, *rest = stat[end + 2 :].split()
    threads, started_s = int(rest[13]), int(rest[15]) / _TICKS_HZ
    # Its first thread may be dead while others run; then it cannot be waited for yet.
    is_zombie = state in (b"Z", b"X") and threads <= 1
    member = SessionProcess(pid, stat[begin:end], int(parent), is_zombie, started_s)
    return int(session), member
