"""Plain functions as the engine of a worker process; it imports nothing from this framework.

A job's payload is pickled (module, qualname), then the pickled keyword arguments.  Its answer is
one piece of JSON: ``{"value": …}``, or ``{"error": [class name, text, traceback, told]}``, where
told is whether the text is for a model.

Rules:
1. An interrupt is the cancel of a job, and then SIGINT.  A SIGINT without a cancel of the current
   call does nothing, so a late one is harmless.
2. A call gets KeyboardInterrupt at most once, and only inside its function.
3. The process dies with its parent. If native code blocks the interpreter, so that the end of the
   input goes unnoticed, the hang-up of the terminal ends it.
4. Results are returned as JSON, so that the parent runs no code to read them.
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
"""The parent parses a result on its event loop: 16 MiB take about 20 ms."""
_TOOL_ERROR = ("bargein.nodes.tools._errors", "ToolError")
"""The class of exceptions whose text is for a model."""
MAIN = "__mp_main__"
"""The module name for the parent's ``__main__`` script; the same as in multiprocessing, whose users
know it."""


def load(settings: dict[str, Any]) -> Functions:
    """Set up the process.

    Args:
        settings: The descriptors ``stdout`` and ``tty``; the parent's ``path``; its
            ``main`` script (file and package) or None; and the type of the terminal, ``term``.
    """
    os.environ["TERM"] = settings["term"]
    os.dup2(settings["stdout"], 1)
    os.close(settings["stdout"])
    _acquire_terminal(settings["tty"])
    sys.path[:] = settings["path"]
    if settings["main"] is not None:
        sys.modules["__main__"] = _Main(*settings["main"])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    return Functions()


class Functions:
    """Calls functions, which can be interrupted."""

    about: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._is_cancelled: Callable[[], bool] | None = None
        """Says whether the current call is cancelled; None between calls."""
        self._listen_for_interrupts()

    def interrupt(self) -> None:
        """Send SIGINT to the thread that runs functions, which interrupts blocking calls."""
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def run(
        self, payload: bytes, give: Callable[[bytes], None], is_cancelled: Callable[[], bool]
    ) -> None:
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
        except BaseException as error:  # noqa: BLE001 - anything can come out of a value's methods
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
            raise KeyboardInterrupt  # in a fork of ours, which is an ordinary process
        self._raise_if_cancelled()

    def _raise_if_cancelled(self) -> None:
        is_cancelled = self._is_cancelled
        if is_cancelled is not None and is_cancelled():
            self._is_cancelled = None
            raise KeyboardInterrupt

    def _listen_for_interrupts(self) -> None:
        # Repeated after each call, to undo what a function did to the signal.
        signal.signal(signal.SIGINT, self._on_sigint)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


class _Main(ModuleType):
    """The parent's ``__main__``, which runs only when one of its names is needed."""

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
    # Without a spec, relative imports use the package.
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
    """Return a value as JSON, by the same rules as for other tools."""
    if value is None or isinstance(value, (str, bool, int)):
        return json.dumps(value).encode()
    from pydantic_core import to_json  # imported here because it takes longer than everything else

    return to_json(value, bytes_mode="base64")


def _describe(error: BaseException, skipped: int = 0) -> bytes:
    """Return an error in the form for the parent, without its first frames, which are ours."""
    where = error.__traceback__
    for _ in range(skipped):
        where = where.tb_next if where is not None else None
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001 - an exception that cannot say what it is
        text = ""
    lines = "".join(traceback.format_exception(type(error), error, where))
    told = any((cls.__module__, cls.__name__) == _TOOL_ERROR for cls in type(error).__mro__)
    return json.dumps({"error": [type(error).__name__, text, lines, told]}).encode()


def _acquire_terminal(descriptor: int) -> None:
    """Make a terminal our controlling terminal; keep it open, or the parent would read its end."""
    import fcntl  # imported here because the parent also imports this file, on any platform
    import termios

    # When the parent ends, the terminal hangs up, and the signal ends even native code. The default
    # action is restored because a server under nohup ignores the signal.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    os.set_inheritable(descriptor, False)
    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)
