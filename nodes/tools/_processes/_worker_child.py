"""What runs in a Python worker process: plain functions, one at a time.

Run as a script, ``python -P _worker_child.py CHANNEL ASKED TERMINAL``, by `_worker_process.py`; the
arguments are descriptors: a socket, a pipe, and a terminal or -1.  It imports nothing of this
framework, so that it starts at once.

Frames on the socket, both ways: u32 length of what follows, u8 kind, u64 call, payload.

    in:  ``S`` set up, payload: pickled dict(path, main)
         ``C`` call, payload: pickled (module, qualname), then the pickled keyword arguments
    out: ``R`` ready              ``V`` value, payload: pickled
         ``E`` error, payload: pickled (class name, text, traceback)

Rules:
1. An interrupt is a number on the pipe ASKED, the call that is meant, and then SIGINT.  A SIGINT
   without the number of the call that runs does nothing: what comes late, or between two calls,
   hurts nobody.
2. One call gets KeyboardInterrupt at most once, and never outside of its function.
3. The end of the socket kills the whole process group: nothing here outlives the parent.  Where
   native code holds the interpreter, the hang-up of the terminal does it.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import os
import pickle
import queue
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Mapping
from types import FrameType, ModuleType
from typing import Any

HEADER = struct.Struct("<IBQ")
NUMBER = struct.Struct("<Q")
MAX_RESULT_BYTES = 16 << 20
"""A result is read on the parent's event loop: 16 MiB take it some 20 ms."""
MAIN = "__mp_main__"
"""The name under which a script that is somebody's ``__main__`` is imported; the same as for
multiprocessing, whose users know it."""


CAUGHT = (Exception, BaseExceptionGroup, KeyboardInterrupt, SystemExit, GeneratorExit)
"""What a function may raise; anything else ends the process."""


def frame(kind: bytes, call: int, payload: bytes = b"") -> bytes:
    """Return one frame as bytes."""
    return HEADER.pack(9 + len(payload), kind[0], call) + payload


class Server:
    """Answers calls until the socket ends."""

    def __init__(self, channel: socket.socket, asked: int) -> None:
        self._channel = channel
        self._asked_pipe = asked
        self._pid = os.getpid()
        self._inbox: queue.SimpleQueue[tuple[bytes, int, bytes]] = queue.SimpleQueue()
        self._armed = 0
        """The call whose function runs, 0 for none."""
        self._asked = 0
        """The newest call that was asked to stop."""

    def serve(self) -> None:
        """Set up, say that it is ready, and answer; never returns."""
        os.register_at_fork(after_in_child=self._let_go)
        self._listen_for_interrupts()
        threading.Thread(target=self._read_frames, daemon=True).start()
        self._set_up(pickle.loads(self._inbox.get()[2]))
        self._channel.sendall(frame(b"R", 0))
        while True:
            _, call, payload = self._inbox.get()
            kind, answer = self._answer(call, payload)
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(Exception):  # the function may have closed or replaced it
                    stream.flush()
            self._listen_for_interrupts()
            self._channel.sendall(frame(kind, call, answer))

    def _answer(self, call: int, payload: bytes) -> tuple[bytes, bytes]:
        try:
            value = self._run(call, payload)
        except CAUGHT as error:
            return b"E", _describe(error, skipped=2)
        try:
            data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        except Exception as error:  # noqa: BLE001 - anything can come out of __reduce__
            problem = f"a {type(value).__name__} cannot leave the worker: {error}"
            return b"E", _describe(TypeError(problem))
        if len(data) > MAX_RESULT_BYTES:
            problem = f"a result of {len(data)} bytes, at most {MAX_RESULT_BYTES} can be returned"
            return b"E", _describe(ValueError(problem))
        return b"V", data

    def _run(self, call: int, payload: bytes) -> Any:
        try:
            self._armed = call
            if self._asked >= call:
                self._armed = 0
                raise KeyboardInterrupt
            stream = io.BytesIO(payload)
            module, qualname = pickle.load(stream)
            function = _resolve(module, qualname)
            return function(**pickle.load(stream))
        finally:
            self._armed = 0

    def _on_sigint(self, number: int, where: FrameType | None) -> None:
        if os.getpid() != self._pid:
            raise KeyboardInterrupt  # a fork of ours: an ordinary process
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._asked_pipe, 512 * NUMBER.size):
                self._asked = max(self._asked, *(call for (call,) in NUMBER.iter_unpack(data)))
        if self._armed and self._asked >= self._armed:
            self._armed = 0
            raise KeyboardInterrupt

    def _listen_for_interrupts(self) -> None:
        # Again after each call: what a function does to the signal lasts as long as the call.
        signal.signal(signal.SIGINT, self._on_sigint)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def _read_frames(self) -> None:
        with self._channel.makefile("rb") as stream:
            while len(head := stream.read(HEADER.size)) == HEADER.size:
                length, kind, call = HEADER.unpack(head)
                self._inbox.put((bytes((kind,)), call, stream.read(length - 9)))
        os.killpg(self._pid, signal.SIGKILL)

    def _let_go(self) -> None:
        """In a fork: close what the parent would take for a sign of life of ours."""
        for descriptor in (self._channel.fileno(), self._asked_pipe):
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def _set_up(self, settings: Mapping[str, Any]) -> None:
        sys.path[:] = settings["path"]
        if settings["main"] is not None:
            sys.modules["__main__"] = _Main(*settings["main"])
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)


class _Main(ModuleType):
    """The parent's ``__main__``, which is run only when something of it is needed."""

    def __init__(self, path: str, package: str) -> None:
        super().__init__(MAIN)
        self._path = path
        self._parent_package = package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if MAIN not in sys.modules:
            _load_main(self._path, self._parent_package)
        return getattr(sys.modules[MAIN], name)


def _load_main(path: str, package: str) -> None:
    spec = importlib.util.spec_from_file_location(MAIN, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path!r} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Without a spec, relative imports go by the package.
    module.__spec__, module.__package__ = None, package
    sys.modules[MAIN] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[MAIN]
        raise


def _resolve(module: str, qualname: str) -> Any:
    found: Any = importlib.import_module(module)
    for name in qualname.split("."):
        found = getattr(found, name)
    return found


def _describe(error: BaseException, skipped: int = 0) -> bytes:
    """Return what the parent is told of an error, without its first frames, which are ours."""
    where = error.__traceback__
    for _ in range(skipped):
        where = where.tb_next if where is not None else None
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - an exception that cannot say what it is
        text = ""
    lines = "".join(traceback.format_exception(type(error), error, where))
    return pickle.dumps((type(error).__name__, text, lines))


def _take_terminal(descriptor: int) -> None:
    """Make a terminal ours; it stays open, or the parent would read its end."""
    import fcntl  # in here, as the parent imports this file too, on any platform
    import termios

    if descriptor >= 0:
        fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)


def main(channel: int, asked: int, terminal: int) -> None:
    """Serve.

    Args:
        channel: Descriptor of the socket.
        asked: Descriptor of the pipe with the numbers of the calls to interrupt.
        terminal: Descriptor of a terminal, or -1.
    """
    for descriptor in (channel, asked, terminal):
        if descriptor >= 0:
            os.set_inheritable(descriptor, False)
    os.set_blocking(asked, False)
    _take_terminal(terminal)
    Server(socket.socket(fileno=channel), asked).serve()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
