"""Finds where tasks wait and errors were raised, and makes runs repeatable."""

from __future__ import annotations

import inspect
import random
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import trio
from trio._core import _run as _scheduler

# The packages that run trio's tasks; both are loaded with trio.
_TRIO = tuple(str(Path(inspect.getfile(sys.modules[name])).parent) for name in ("trio", "outcome"))
_SWITCH = "_ALLOW_DETERMINISTIC_SCHEDULING"


def where_waits(task: trio.lowlevel.Task) -> str:
    """Return the innermost line, outside of trio, at which a task waits."""
    place = ""
    for frame, line in task.iter_await_frames():
        code = frame.f_code
        if not place or not code.co_filename.startswith(_TRIO):
            place = _place(code.co_filename, line, code.co_name)
    return place or "its end"


def where_raised(error: BaseException) -> str:
    """Return the innermost line, outside of trio, that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if not frame.filename.startswith(_TRIO)]
    return _place(ours[-1].filename, ours[-1].lineno, ours[-1].name) if ours else "trio"


def _place(name: str, line: int | None, function: str) -> str:
    path = Path(name)
    short = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path.name
    return f"{short}:{line} in {function}"


@contextmanager
def repeatable(seed: int) -> Iterator[None]:
    """Make everything in a run of trio happen in the same order each time.

    trio shuffles the tasks that are ready at once, and has a switch, made for Hypothesis, that
    makes the shuffling repeatable.  Python's ``random`` is seeded too.  Afterwards everything is
    restored.
    """
    shuffling = _scheduler._r  # noqa: SLF001 - trio has no public name for it
    states = shuffling.getstate(), random.getstate()
    before = getattr(_scheduler, _SWITCH)
    setattr(_scheduler, _SWITCH, True)
    shuffling.seed(seed)
    random.seed(seed)
    try:
        yield
    finally:
        setattr(_scheduler, _SWITCH, before)
        shuffling.setstate(states[0])
        random.setstate(states[1])
