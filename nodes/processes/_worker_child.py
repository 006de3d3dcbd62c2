"""What runs in a worker process: the loop around one engine, which answers one job at a time.

Run as a script, ``python -P _worker_child.py NICENESS ENGINE.py SETTINGS``, by `_process.py`.  It
imports nothing of this framework, so it starts at once, and a GPL engine stays in a process of its
own.

A frame, in both directions: u32 length of what follows, u8 kind, u64 job, payload (little-endian).

    in:  ``J`` do a job              ``C`` cancel this job and all before it
         ``?`` are you there
    out: ``R`` ready, payload: JSON of the engine's ``about``
         ``P`` piece of a job's answer         ``E`` the job ended, or was cancelled
         ``X`` the job, or loading (job 0), failed; payload: message
         ``!`` it is there; left out while another frame is being written

Rules:
1. A thread reads the input, so a cancel arrives while the engine works.
2. The end of the input kills the process group at once: a worker never outlives its parent.
3. Descriptors 0 and 1 are not the pipes: what native code prints joins the standard error, and
   nothing an engine reads or prints by accident can break a frame.
"""

from __future__ import annotations

import importlib.util
import json
import os
import queue
import signal
import struct
import sys
import threading
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

HEADER = struct.Struct("<IBQ")
AFTER_LENGTH = HEADER.size - 4


class Engine(Protocol):
    """What ``load(settings)`` of ENGINE.py returns."""

    about: dict[str, Any]
    """Told to the parent once the engine is loaded; JSON."""
    interrupt: Callable[[], None]
    """Called in a thread after each cancel; may be missing."""

    def run(
        self,
        job: int,
        payload: bytes,
        give: Callable[[bytes], None],
        is_cancelled: Callable[[], bool],
    ) -> None:
        """Answer a job piece by piece with `give`; return early once `is_cancelled()` is true."""
        ...


def frame(kind: bytes, job: int, payload: bytes = b"") -> bytes:
    """Return one frame as bytes."""
    return HEADER.pack(AFTER_LENGTH + len(payload), kind[0], job) + payload


class Outbox:
    """Writes frames to the parent, one at a time."""

    def __init__(self, stream: BinaryIO) -> None:
        """Write to an unbuffered stream."""
        self._stream = stream
        self._lock = threading.Lock()

    def send(self, kind: bytes, job: int, payload: bytes = b"") -> None:
        """Write one frame; waits while the pipe is full."""
        with self._lock:
            self._write(frame(kind, job, payload))

    def send_unless_busy(self, kind: bytes, job: int) -> None:
        """Write one frame, but not while another thread waits in `send`."""
        if self._lock.acquire(blocking=False):
            try:
                self._write(frame(kind, job))
            finally:
                self._lock.release()

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[self._stream.write(left) :]


class Inbox:
    """Reads what the parent sends, in a thread of its own."""

    def __init__(self, stream: BinaryIO, outbox: Outbox) -> None:
        """Read from a stream; answer what can be answered at once."""
        self._stream = stream
        self._outbox = outbox
        self._cancelled = 0
        self.interrupt: Callable[[], None] = lambda: None
        self.jobs: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()

    def run(self) -> None:
        """Read until the parent is gone, then end the process."""
        while len(head := self._stream.read(HEADER.size)) == HEADER.size:
            length, kind, job = HEADER.unpack(head)
            payload = self._stream.read(length - AFTER_LENGTH)
            if kind == b"C"[0]:
                self._cancelled = max(self._cancelled, job)
                self.interrupt()
            elif kind == b"?"[0]:
                self._outbox.send_unless_busy(b"!", job)
            else:
                self.jobs.put((job, payload))
        # The engine may be deep inside native code: nothing gentler would end it.
        if hasattr(os, "killpg") and os.getpgid(0) == os.getpid():
            os.killpg(0, signal.SIGKILL)
        os._exit(0)

    def is_cancelled(self, job: int) -> bool:
        """Whether a job was cancelled; jobs are numbered in order and run one at a time."""
        return job <= self._cancelled


def load(path: str, settings: dict[str, Any]) -> Any:
    """Return what ``load(settings)`` of a Python file returns."""
    spec = importlib.util.spec_from_file_location(path.replace("/", "_"), path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load(settings)


def private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Move the pipes to the parent away from descriptors 0 and 1; return input and output."""
    pipes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", 0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    if hasattr(os, "register_at_fork"):  # a fork that lives on must not hide our end
        for pipe in pipes:
            os.register_at_fork(after_in_child=pipe.close)
    return pipes


def main(niceness: int, engine_path: str, settings: str) -> None:
    """Load the engine, say that it is ready, and answer jobs until the input ends.

    Args:
        niceness: How far the process stands back where processors are few, 0 to 19.
        engine_path: Python file with a function ``load(settings) -> Engine``.
        settings: JSON object for that function.
    """
    source, out = private_pipes()
    outbox = Outbox(out)
    inbox = Inbox(source, outbox)
    if niceness and hasattr(os, "nice"):
        os.nice(niceness)  # first, as threads take over that of the one that makes them
    threading.Thread(target=inbox.run, daemon=True).start()

    try:
        engine: Engine = load(engine_path, json.loads(settings))
    except Exception as error:  # noqa: BLE001 - whatever it is, the parent raises it
        outbox.send(b"X", 0, f"{type(error).__name__}: {error}".encode())
        sys.exit(1)
    inbox.interrupt = getattr(engine, "interrupt", inbox.interrupt)
    outbox.send(b"R", 0, json.dumps(engine.about).encode())
    while True:
        job, payload = inbox.jobs.get()
        answer(engine, job, payload, inbox, outbox)


def answer(engine: Engine, job: int, payload: bytes, inbox: Inbox, outbox: Outbox) -> None:
    """Do one job; what the engine raises is its answer."""

    def give(piece: bytes) -> None:
        if not inbox.is_cancelled(job):
            outbox.send(b"P", job, piece)

    try:
        if not inbox.is_cancelled(job):
            engine.run(job, payload, give, lambda: inbox.is_cancelled(job))
    except Exception as error:  # noqa: BLE001 - the parent raises it, and the process lives on
        outbox.send(b"X", job, f"{type(error).__name__}: {error}".encode())
    else:
        outbox.send(b"E", job)


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
