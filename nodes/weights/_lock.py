"""A lock between processes, held on an open file and released when the process ends."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        while True:
            try:
                msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # tries ten times, one second apart
            except OSError:
                continue
            return

    def _unlock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock on a file, waiting until it is free.

    Args:
        path: The lock file; it is created if it does not exist, and never removed.
    """
    with path.open("a+b") as file:
        _lock(file.fileno())
        try:
            yield
        finally:
            file.seek(0)
            _unlock(file.fileno())
