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
    """Return a function that returns the state letter of a process, "-" if there is no process."""

    def state(pid: int) -> str:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
        except FileNotFoundError:
            return "-"

    return state


@pytest.fixture
def is_there() -> Callable[[int], bool]:
    """Return a function that says whether a process exists, even as a zombie."""

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
