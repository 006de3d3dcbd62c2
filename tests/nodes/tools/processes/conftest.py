"""Functions for a worker to call."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio

from bargein.processes import PythonWorker

from .child import PATIENT, f

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

def ignore_hang_up():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

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


@pytest.fixture
async def worker():
    """An open worker that a polite function has all the time with."""
    with trio.fail_after(60):
        async with PythonWorker(ladder=PATIENT).open() as worker:
            yield worker
            process = worker.pid
    if process is not None:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


@pytest.fixture
def cut(wait_until):
    """Call a function, and cancel the call once the function has made its file."""

    async def call_and_cut(worker: PythonWorker, name: str, up: Path, **kwargs: object) -> None:
        with trio.CancelScope() as scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(worker.call, f(name), {"path": str(up), **kwargs})
                await wait_until(up.exists)
                scope.cancel()
        assert scope.cancelled_caught

    return call_and_cut
