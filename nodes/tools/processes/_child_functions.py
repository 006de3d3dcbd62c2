"""Plain functions as the engine of a worker process; it imports nothing of this framework.

A job's payload is pickled (module, qualname), then the pickled keyword arguments.  Its answer is
one piece of JSON: ``{"value": …}``, or ``{"error": [class name, text, traceback]}``.

Rules:
1. An interrupt is the cancel of a job, and then SIGINT.  A SIGINT without a cancel of the call that
   runs does nothing: what comes late, or between two calls, hurts nobody.
2. One call gets KeyboardInterrupt at most once, and never outside of its function.
3. The process dies with its parent.  Where native code holds the interpreter, so that the end of
   the input is not seen, the hang-up of the terminal does it.
4. What a function returns leaves as JSON: the parent runs no code to read it.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import os
import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

MAX_RESULT_BYTES = 16 << 20
"""A result is read on the parent's event loop: 16 MiB take it some 20 ms."""
MAIN = "__mp_main__"
"""The name under which a script that is somebody's ``__main__`` is imported; the same as for
multiprocessing, whose users know it."""


def load(settings: dict[str, Any]) -> Functions:
    """Set the process up.

    Args:
        settings: Descriptors ``stdout`` and ``stderr`` to print to, and ``tty``; the parent's
            ``path``, its ``main`` script (file and package) or None, and what ``term`` the
            terminal is.
    """
    os.environ["TERM"] = settings["term"]
    os.dup2(settings["stdout"], 1)
    os.close(settings["stdout"])
    os.close(settings["stderr"])  # it is descriptor 2 already
    _take_terminal(settings["tty"])
    sys.path[:] = settings["path"]
    if settings["main"] is not None:
        sys.modules["__main__"] = _Main(*settings["main"])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    return Functions()


class Functions:
    """Calls functions, and is interrupted in the middle of one."""

    about: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it

    def __init__(self) -> None:
        """Listen for interrupts."""
        self._pid = os.getpid()
        self._is_cancelled: Callable[[], bool] | None = None
        """Asks about the call whose function runs; None while none does."""
        self._listen_for_interrupts()

    def interrupt(self) -> None:
        """Send SIGINT to the thread that runs functions, which ends what it waits for."""
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def run(
        self, payload: bytes, give: Callable[[bytes], None], is_cancelled: Callable[[], bool]
    ) -> None:
        """Call one function."""
        answer = self._answer(payload, is_cancelled)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):  # the function may have closed or replaced it
                stream.flush()
        self._listen_for_interrupts()
        give(answer)

    def _answer(self, payload: bytes, is_cancelled: Callable[[], bool]) -> bytes:
        try:
            value = self._call(payload, is_cancelled)
        except BaseException as error:  # noqa: BLE001 - whatever it raises ends this call alone
            return _describe(error, skipped=2)
        try:
            data = b'{"value":%b}' % _json(value)
        except Exception as error:  # noqa: BLE001 - anything can come out of a value's methods
            problem = f"a {type(value).__name__} cannot leave the worker ({error}); return text, "
            return _describe(TypeError(f"{problem}numbers, lists, dicts or pydantic models"))
        if len(data) > MAX_RESULT_BYTES:
            problem = f"a result of {len(data)} bytes, at most {MAX_RESULT_BYTES} can be returned"
            return _describe(ValueError(problem))
        return data

    def _call(self, payload: bytes, is_cancelled: Callable[[], bool]) -> Any:
        try:
            self._is_cancelled = is_cancelled
            self._raise_if_cancelled()
            stream = io.BytesIO(payload)
            module, qualname = pickle.load(stream)
            function = _resolve(module, qualname)
            return function(**pickle.load(stream))
        finally:
            self._is_cancelled = None

    def _on_sigint(self, number: int, where: FrameType | None) -> None:
        if os.getpid() != self._pid:
            raise KeyboardInterrupt  # a fork of ours: an ordinary process
        self._raise_if_cancelled()

    def _raise_if_cancelled(self) -> None:
        is_cancelled = self._is_cancelled
        if is_cancelled is not None and is_cancelled():
            self._is_cancelled = None
            raise KeyboardInterrupt

    def _listen_for_interrupts(self) -> None:
        # Again after each call: what a function does to the signal lasts as long as the call.
        signal.signal(signal.SIGINT, self._on_sigint)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


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


def _json(value: Any) -> bytes:
    """Return a value as JSON, as a tool's value becomes text elsewhere."""
    if value is None or isinstance(value, (str, bool, int)):
        return json.dumps(value).encode()
    from pydantic_core import to_json  # in here, as it takes longer to import than all else

    return to_json(value, bytes_mode="base64")


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
    return json.dumps({"error": [type(error).__name__, text, lines]}).encode()


def _take_terminal(descriptor: int) -> None:
    """Make a terminal ours; it stays open, or the parent would read its end."""
    import fcntl  # in here, as the parent imports this file too, on any platform
    import termios

    # The end of the parent hangs the terminal up, which ends what native code does as well: also
    # where the server ignores that signal, as under nohup.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.set_inheritable(descriptor, False)
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)
