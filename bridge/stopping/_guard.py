"""Starts the guard: the process that ends ours if it was asked to stop and cannot."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import final

_SCRIPT = Path(__file__).with_name("_guard_child.py")


@final
class Guard:
    """The guard of this process; without one, its methods do nothing.

    Attributes:
        pid: Its process id; 0 without one.
    """

    def __init__(self, messages: int | None = None, pid: int = 0) -> None:
        """Talk to a guard.

        Args:
            messages: Where it reads messages; ``None`` if there is none.
            pid: Its process id.
        """
        self.pid = pid
        self._messages = messages

    def report_heard(self) -> None:
        """Tell it that the event loop has heard all signals so far."""
        self._send("heard")

    def set_limit(self, limit_s: float) -> None:
        """Tell it to end the process this many seconds from now, if it has not ended by then."""
        self._send(f"within {limit_s}")

    def report_alive(self) -> None:
        """Tell it that the stopping event loop runs; it expects that again within 5 s."""
        self._send("alive")

    def _send(self, line: str) -> None:
        if self._messages is not None:
            with contextlib.suppress(OSError):  # it is gone, or does not read
                os.write(self._messages, f"{line}\n".encode())


@contextmanager
def guarded(numbers: set[int], tty: int = -1) -> Iterator[Guard]:
    """Have a guard while the block runs; the handlers of the signals must be set already.

    Where a process cannot have one (on Windows, or if none can be started), it does without.

    Args:
        numbers: The signals that ask to stop, which have handlers.
        tty: The terminal whose loss counts as SIGHUP; -1 for none.
    """
    if not hasattr(faulthandler, "register") or not sys.executable:
        yield Guard()
        return
    pipes = [os.pipe() for _ in range(3)]
    process = None
    registered: set[int] = set()
    try:
        with contextlib.suppress(OSError):
            process = _start([read for read, _ in pipes], tty)
        for read, write in pipes:
            os.close(read)
            os.set_blocking(write, False)  # a signal's handler must never wait
        interrupts, stops, messages = (write for _, write in pipes)
        if process is not None:
            for number in numbers:
                # Written in C, at once, whoever has the interpreter's lock.
                faulthandler.register(
                    number,
                    file=interrupts if number == signal.SIGINT else stops,
                    all_threads=False,
                    chain=True,
                )
                registered.add(number)
        yield Guard(messages, 0 if process is None else process.pid)
    finally:
        for number in registered:
            faulthandler.unregister(number)
        for _, write in pipes:
            os.close(write)
        if process is not None:
            process.wait()  # it ends when its pipes are closed


def _start(reads: list[int], tty: int) -> subprocess.Popen[bytes]:
    kept = [*reads, tty] if tty >= 0 else reads
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(_SCRIPT), str(os.getpid()), *map(str, [*reads, tty])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=kept,
    )
