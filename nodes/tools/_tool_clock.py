"""Keeps the virtual clock of a test from leaping while a thread or a process works."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING

import trio
from trio.lowlevel import RunVar

if TYPE_CHECKING:
    from trio.testing import MockClock

_at_work: RunVar[int] = RunVar("bargein_tools_in_real_time", default=0)
"""How many tools of this run work in real time."""

_pace: RunVar[tuple[float, float]] = RunVar("bargein_pace_of_clock", default=(0.0, 0.0))
"""After how much real idleness the clock jumps while none of them works, in seconds; and its
rate."""

_in_real_time: ContextVar[bool] = ContextVar("bargein_tool_in_real_time", default=False)
"""Whether the current tool is one of them; its thread has the same context."""


@contextlib.contextmanager
def real_time() -> Iterator[None]:
    """Let a test's clock keep the pace of real time during the block.

    A clock that jumps as soon as all tasks wait would leap over every time limit in the first
    millisecond of a thread's work. Clocks that do not jump are left alone.
    """
    clock = _jumping_clock()
    if clock is None:
        yield
        return
    outer = _in_real_time.set(True)
    _slow_down(clock)
    try:
        yield
    finally:
        _let_jump(clock)
        _in_real_time.reset(outer)


@contextlib.contextmanager
def virtual_time() -> Iterator[None]:
    """Let the clock jump again while the tool does not work, but waits for the caller."""
    clock = _jumping_clock() if _in_real_time.get() else None
    if clock is None:
        yield
        return
    _let_jump(clock)
    try:
        yield
    finally:
        _slow_down(clock)


def _slow_down(clock: MockClock) -> None:
    if not _at_work.get():
        _pace.set((clock.autojump_threshold, clock.rate))
        clock.autojump_threshold, clock.rate = math.inf, 1.0
    _at_work.set(_at_work.get() + 1)


def _let_jump(clock: MockClock) -> None:
    """Let the clock jump, unless another tool is at work."""
    _at_work.set(_at_work.get() - 1)
    if not _at_work.get():
        clock.autojump_threshold, clock.rate = _pace.get()


def _jumping_clock() -> MockClock | None:
    """Return the clock of this run if it jumps, or would without a tool at work."""
    if "trio.testing" not in sys.modules:  # a program that did not import it has no MockClock
        return None
    from trio.testing import MockClock

    clock = trio.lowlevel.current_clock()
    if not isinstance(clock, MockClock):
        return None
    jumps = not math.isinf(clock.autojump_threshold) or _at_work.get()
    return clock if jumps else None
