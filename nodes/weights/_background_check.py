"""Hashes the weights that a process uses, once, in the background.

When a model is asked for its files are looked at by size alone, which takes no time; a disk that
rots, or somebody who writes to the cache folder, changes no size.
"""

from __future__ import annotations

import threading
from collections import deque
from pathlib import Path
from typing import final

import structlog

from ._errors import WeightsError, WeightsHashError
from ._store import ModelStore

log = structlog.get_logger()

REST = 4.0
"""The thread sleeps four times as long as it works, and so takes a fifth of a core at most: all
models of the table, 250 MB, are hashed in some seconds."""


@final
class BackgroundCheck:
    """Checks each model once in the life of the process, one after the other, in one thread."""

    def __init__(self) -> None:
        """Begin without a thread; there is one only while something is to be checked."""
        self._lock = threading.Lock()
        self._known: set[tuple[Path, str]] = set()
        self._waiting: deque[tuple[ModelStore, str]] = deque()
        self._thread: threading.Thread | None = None

    def add(self, store: ModelStore, name: str) -> None:
        """Have a model checked soon, unless it was before; never waits, from any thread.

        Args:
            store: The store that has it.
            name: Its name in the table.
        """
        key = (store.folder, name)
        with self._lock:
            if key in self._known:
                return
            self._known.add(key)
            self._waiting.append((store, name))
            if self._thread is None:
                # A daemon: a process that ends waits for nothing of this, and nothing is written.
                self._thread = threading.Thread(
                    target=self._run, name="bargein weights", daemon=True
                )
                self._thread.start()

    def wait(self, limit_s: float) -> bool:
        """Wait until nothing is left to check; blocks, for tests.

        Args:
            limit_s: How long at most.

        Returns:
            Whether nothing is left.
        """
        thread = self._thread
        if thread is not None:
            thread.join(limit_s)
        return thread is None or not thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return
                store, name = self._waiting.popleft()
            _check(store, name)


def _check(store: ModelStore, name: str) -> None:
    try:
        store.verify(name, rest=REST)
    except WeightsHashError as error:
        log.error("model_damaged", model=name, file=error.file, remedy=error.remedy)
    except (WeightsError, OSError) as error:  # taken away meanwhile: whoever loads it is told
        log.warning("model_not_checked", model=name, error=type(error).__name__)


checks = BackgroundCheck()
"""Those of this process."""
