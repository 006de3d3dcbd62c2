"""Watches the event loop of a test, and names code that hangs: the test would never say so."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import trio

from ..monitoring._event_loop_watchdog import watch_loop

BLOCKED_S = 1.0
"""How long a step may block before it is logged, in seconds: machines that run tests are busy."""

CHECK_S = 5.0
"""When tasks are first checked, in seconds of the real clock: a check wakes the loop, so a run that
is over by then takes the same steps with the same seed."""

_PLUGIN = "bargein._pytest_plugin"
"""The module that has a terminal which pytest does not capture."""

_is_watched = trio.lowlevel.RunVar("bargein_is_watched", False)


@contextmanager
def watched_loop() -> Iterator[None]:
    """Log what blocks the event loop, and write to the terminal what hangs; once for each run."""
    if _is_watched.get():
        yield
        return
    _is_watched.set(True)
    try:
        with watch_loop(blocked_s=BLOCKED_S, check_s=CHECK_S, on_hang=_write):
            yield
    finally:
        _is_watched.set(False)


def _write(what: str) -> None:
    descriptor = getattr(sys.modules.get(_PLUGIN), "terminal", None) or 2
    with suppress(OSError):
        os.write(descriptor, f"\nbargein: the test hangs: {what}\n".encode(errors="replace"))
