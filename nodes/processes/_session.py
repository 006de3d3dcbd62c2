"""Look at the processes of a session, and signal them.

A process that is started with ``start_new_session=True`` leads a session whose number is its pid.
What it starts belongs to that session, also in a process group of its own, until it asks for a
session of its own (a daemon does): such a process has left the family on purpose.

Linux tells the sessions in /proc.  Elsewhere only the leader's process group is seen.
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
class Member:
    """A process of a session, as it was when it was looked at."""

    pid: int
    name: bytes
    """Of the program that it runs: it changes when it becomes another one."""
    parent: int
    is_zombie: bool
    """It has ended, and its parent has not asked for its exit code yet."""
    started_s: float
    """Seconds from the machine's start to its own, in steps of a clock tick (10 ms)."""


def strike(
    session: int,
    number: int,
    *,
    leader_is_reaped: bool,
    is_meant: Callable[[Member], bool] | None = None,
) -> list[Member]:
    """Send a signal to each living process of a session; ended orphans of ours are reaped.

    Args:
        session: The session's number, the pid of the process that leads it.
        number: The signal's number; 0 sends nothing and only looks.
        leader_is_reaped: Whether that process has ended and its exit code was fetched.  A process
            of that pid is then a stranger's, and its session has nothing to do with ours.
        is_meant: Says of each whether it gets the signal; ``None`` means everybody.  Where only
            the group is seen, nobody can be told from others, and nothing is sent.

    Returns:
        Those that were alive and are meant.
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


def members(session: int) -> list[Member]:
    """List the processes of a session, zombies too; Linux only."""
    return [member for number, member in _scan() if number == session]


def boot_clock_s() -> float:
    """Return the earliest `Member.started_s` that a process which starts now can have."""
    if sys.platform != "linux":
        return 0.0
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * _TICKS_HZ) / _TICKS_HZ


def _strike_group(group: int, number: int) -> list[Member]:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return []
    return [Member(group, b"", 0, is_zombie=False, started_s=0.0)]


def _reap(member: Member, session: int) -> None:
    """Fetch the exit code of an orphan that fell to us: we are process 1, or a subreaper."""
    if member.parent == os.getpid() and member.pid != session:
        with suppress(ChildProcessError):
            os.waitpid(member.pid, os.WNOHANG)


def _scan() -> Iterator[tuple[int, Member]]:
    """Yield the session's number and the process, for each process there is."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):  # it ended since the folder was read
                yield _parse(int(name), _read(f"/proc/{name}/stat"))


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)


def _parse(pid: int, stat: bytes) -> tuple[int, Member]:
    # proc_pid_stat(5): the name is in brackets and may itself hold brackets and spaces.
    begin, end = stat.index(b"(") + 1, stat.rindex(b")")
    state, parent, _, session, *rest = stat[end + 2 :].split()
    threads, started_s = int(rest[13]), int(rest[15]) / _TICKS_HZ
    # Its first thread alone may be dead: the others run, and it cannot be waited for yet.
    is_zombie = state in (b"Z", b"X") and threads <= 1
    member = Member(pid, stat[begin:end], int(parent), is_zombie, started_s)
    return int(session), member
