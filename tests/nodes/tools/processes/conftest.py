"""Fixtures for tests with real processes."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
import trio


@pytest.fixture(autouse=True)
def _interruptible_children() -> Iterator[None]:
    """Let children hear SIGINT, also when the tests are a background job of a shell."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def python(tmp_path: Path) -> Callable[[str], list[str]]:
    """Return a function that makes a command of Python code."""

    def make(code: str) -> list[str]:
        path = tmp_path / f"script{len(list(tmp_path.iterdir()))}.py"
        path.write_text(code)
        return [sys.executable, "-S", str(path)]

    return make


@pytest.fixture
def wait_until() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Return a function that waits until something is so, and fails if it is not in time."""

    async def wait(condition: Callable[[], object]) -> None:
        with trio.fail_after(30):
            while not condition():  # noqa: ASYNC110 - other processes set no events
                await trio.sleep(0.003)

    return wait


@pytest.fixture
def state_of() -> Callable[[int], str]:
    """Return a function that tells the letter of a process's state, "-" if there is none."""

    def state(pid: int) -> str:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
        except FileNotFoundError:
            return "-"

    return state


@pytest.fixture
def is_there() -> Callable[[int], bool]:
    """Return a function that tells if a process is in the process table, be it as a zombie."""

    def is_in_table(pid: int) -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return True

    return is_in_table


def children() -> set[int]:
    """The processes whose parent is this one."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = path.read_text().rpartition(") ")[2].split()[1]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.add(int(path.parent.name))
    return found


@pytest.fixture
def orphans_are_ours() -> Iterator[None]:
    """Let orphans fall to this process, as to process 1 of a container, and see that none stays."""
    if sys.platform != "linux":
        pytest.skip("subreapers are Linux's")
    set_child_subreaper = 36  # prctl(2)
    before = children()  # workers and browsers that tests share
    libc = ctypes.CDLL(None)
    assert libc.prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    yield
    assert libc.prctl(set_child_subreaper, 0, 0, 0, 0) == 0
    assert children() <= before, "a child is left, be it as a zombie"


FUNCTIONS = '''
import ctypes, os, signal, subprocess, sys, threading, time

kept = 0

def up(path):
    open(path, "w").close()

def echo(value, delay_s=0.0):
    end = time.perf_counter() + delay_s
    while time.perf_counter() < end:
        pass
    return value

def count():
    global kept
    kept += 1
    return kept

def pid():
    return os.getpid()

def doze(path, seconds=60):
    up(path)
    time.sleep(seconds)
    return "slept"

def stubborn(path, seconds):
    """Hears SIGINT, and returns its value all the same."""
    try:
        doze(path)
    except KeyboardInterrupt:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(0.01)
        up(path + ".ended")
    return "late"

def deaf(path):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    doze(path)

def deaf_to_both(path):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    deaf(path)

def stopped(path):
    up(path)
    os.kill(os.getpid(), signal.SIGSTOP)

def native(path):
    up(path)
    return sum(range(10**12))

def family(path):
    """Leaves a deaf process, and waits for a polite one."""
    deaf = subprocess.Popen(["sh", "-c", "trap '' INT TERM; echo; while :; do sleep 60; done"],
                            stdout=subprocess.PIPE, process_group=0)
    deaf.stdout.readline()
    polite = subprocess.Popen(["sleep", "60"])
    with open(path + "~", "w") as file:
        file.write(f"{deaf.pid} {polite.pid}")
    os.rename(path + "~", path)
    polite.wait()
    time.sleep(60)

def ignore_sigint():
    signal.signal(signal.SIGINT, signal.SIG_IGN)

def helper():
    return subprocess.Popen(["sleep", "60"]).pid

def c_system(path):
    os.system(f"touch {path}; sleep 60")
    time.sleep(60)

def write():
    print("printed")
    print("to stderr", file=sys.stderr)
    os.write(1, b"by descriptor\\n")
    os.system("echo by a child")
    with open("/dev/tty", "w") as tty:
        print("to the terminal", file=tty)
    print("unfinished", end="")
    return sys.stdin.read()

def later(delay_s):
    threading.Timer(delay_s, print, ("of an earlier call",)).start()

def close_streams():
    sys.stdout.close()
    os.close(2)

def flood():
    print("x" * 3_000_000)

def fail(text):
    raise LookupError(text)

def leave(code):
    sys.exit(code)

def die(code):
    os._exit(code)

class Bomb:
    def __reduce__(self):
        return os.abort, ()

def bomb():
    return Bomb()

def impossible():
    return lambda: None

def huge():
    return bytes(17 << 20)

class Loud(Exception):
    def __str__(self):
        raise RuntimeError

def loud():
    raise Loud

def fork():
    if (pid := os.fork()) == 0:
        time.sleep(60)
        os._exit(0)
    return pid
'''


@pytest.fixture
def functions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a module `child_functions` that a worker can import."""
    folder = tmp_path / "importable"
    folder.mkdir()
    (folder / "child_functions.py").write_text(FUNCTIONS)
    monkeypatch.syspath_prepend(folder)
