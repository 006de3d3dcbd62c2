"""Starts the guard: the process that ends ours if it was asked to stop and cannot.

Rules:
1. A process has one guard, however many blocks ask for it.
2. The handler in C that tells the guard of a signal comes before Python's, and whoever sets another
   handler takes it away, as `trio.run()` does: a thread puts it back.
3. Ignored signals stay ignored, and what ends a process by default still does.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, final

_SCRIPT = Path(__file__).with_name("_guard_child.py")

LOOK_S = 0.2
"""How often to look for a new handler of a signal, in seconds."""


@final
class Guard:
    """The guard of this process; where a process cannot have one, its methods do nothing.

    Attributes:
        pid: Its process id; 0 without one.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes] | None = None,
        pipes: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Talk to a guard.

        Args:
            process: Its process; ``None`` if there is none.
            pipes: Where it reads ``interrupts``, ``stops`` and ``messages``.
        """
        self.pid = 0 if process is None else process.pid
        self._process = process
        self._pipes = pipes
        self._signal_pipes: dict[int, int] = {}
        """The signals that it is told of, each with the pipe for it."""
        self._handlers: dict[int, Any] = {}
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="bargein guard", daemon=True)
        if process is not None:
            self._register_signals({signal.SIGINT: pipes["interrupts"]})
            self._thread.start()

    @contextmanager
    def handled(self, numbers: set[int]) -> Iterator[None]:
        """Expect `report_heard()` after each of these signals, which have handlers already.

        Outside of this block, only the second SIGINT ends the process by force.
        """
        if self._process is None:
            yield
            return
        before = self._signal_pipes
        self._register_signals(dict.fromkeys(numbers, self._pipes["stops"]))
        try:
            yield
        finally:
            self._register_signals(before)
            self._send("over")

    def report_heard(self) -> None:
        """Tell it that the event loop has heard all signals so far."""
        self._send("heard")

    def set_limit(self, limit_s: float) -> None:
        """Tell it to end the process this many seconds from now, if it has not ended by then."""
        self._send(f"within {limit_s}")

    def report_alive(self) -> None:
        """Tell it that the stopping event loop runs; it expects that again within 5 s."""
        self._send("alive")

    def watch_terminal(self) -> None:
        """Count the loss of the terminal of standard input as SIGHUP, from now on."""
        self._send("terminal")

    def close(self) -> None:
        if self._process is not None:
            self._is_over.set()
            self._thread.join()
            self._register_signals({})
            self._process.kill()  # it has nothing to lose
            self._process.wait()
        for pipe in self._pipes.values():
            os.close(pipe)

    def _send(self, line: str) -> None:
        if self._process is not None:
            with contextlib.suppress(OSError):  # it is gone, or does not read
                os.write(self._pipes["messages"], f"{line}\n".encode())

    def _register_signals(self, pipes: dict[int, int]) -> None:
        with self._lock:
            for number in self._signal_pipes:
                faulthandler.unregister(number)
            self._signal_pipes = pipes
            for number in pipes:
                self._register(number)

    def _register(self, number: int) -> None:
        """Have a signal written to its pipe in C, at once, whoever has the interpreter's lock."""
        self._handlers[number] = handler = signal.getsignal(number)
        if callable(handler):
            faulthandler.unregister(number)  # brings back Python's own handler in C
            faulthandler.register(number, self._signal_pipes[number], all_threads=False, chain=True)

    def _keep(self) -> None:
        while not self._is_over.wait(LOOK_S):
            with self._lock:
                for number in self._signal_pipes:
                    if signal.getsignal(number) is not self._handlers[number]:
                        self._register(number)


_current: Guard | None = None


@contextmanager
def guarded() -> Iterator[Guard]:
    """Have a guard while the block runs; within another such block, it is the same one.

    Where a process cannot have one (on Windows, or if none can be started), it does without.
    """
    global _current
    if _current is not None:
        yield _current
        return
    guard = _current = _start()
    try:
        yield guard
    finally:
        _current = None
        guard.close()


def _start() -> Guard:
    if not hasattr(faulthandler, "register") or not sys.executable:
        return Guard()
    pipes = {name: _pipe() for name in ("interrupts", "stops", "messages")}
    reads = [read for read, _ in pipes.values()]
    process = None
    with contextlib.suppress(OSError):
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_SCRIPT), str(os.getpid()), *map(str, reads)],
            stdin=None if _may_be_terminal() else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=reads,
        )
    for read, write in pipes.values():
        os.close(read)
        os.set_blocking(write, False)  # a signal's handler must never wait
    return Guard(process, {name: write for name, (_, write) in pipes.items()})


def _pipe() -> tuple[int, int]:
    """Return the ends of a pipe; neither takes the number of a standard stream that is closed."""
    import fcntl  # POSIX only, as all of this

    ends = os.pipe()
    read, write = (fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 3) for end in ends)
    for end in ends:
        os.close(end)
    return read, write


def _may_be_terminal() -> bool:
    """Whether standard input is a terminal, or was one: one that is lost looks like any device."""
    with contextlib.suppress(OSError):
        return stat.S_ISCHR(os.fstat(0).st_mode)
    return False
