"""Notices that this process was stopped, before anything else of it runs again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import final

import trio

STOPPED_S = 1.0
"""For how many seconds a process must have stood still to count as stopped."""


@final
class _WakeWatch(trio.abc.Instrument):
    """Compares how long the event loop wanted to sleep with how long it did."""

    def __init__(self, on_wake: Callable[[float], None]) -> None:
        self._on_wake = on_wake
        self._since_s = trio.current_time()

    def before_io_wait(self, timeout: float) -> None:
        self._since_s = trio.current_time()

    def after_io_wait(self, timeout: float) -> None:
        late_s = trio.current_time() - self._since_s - timeout
        if late_s >= STOPPED_S:
            self._on_wake(late_s)


@contextmanager
def watch_wakes(on_wake: Callable[[float], None]) -> Iterator[None]:
    """Notice a stop (SIGSTOP, a machine that was frozen) while the block runs.

    Args:
        on_wake: Called with the seconds, before any task runs; must neither wait nor raise.
    """
    watch = _WakeWatch(on_wake)
    trio.lowlevel.add_instrument(watch)
    try:
        yield
    finally:
        trio.lowlevel.remove_instrument(watch)
