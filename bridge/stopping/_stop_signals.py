"""Passes signals to the event loop in order of arrival, and ends the process if it does not hear.

Rules:
1. A signal that asks to stop is for the event loop, which stops in order.
2. The process ends at the second such signal if the loop has not heard the first one for half a
   second; 5 s after one that it has not heard; and during an orderly stop, once that takes longer
   than it may, or the loop hangs for 5 s.  The guard keeps the time; the handler
   here only looks at the clock.
3. Whoever keeps the process from stopping is named.
"""

from __future__ import annotations

import math
import os
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, final

import trio

from bargein.routes.logs import write_to_stderr

from ..monitoring._ignored_cancellations import app_code_of, cancelled_tasks
from ..monitoring.error_text import is_of_app
from ._guard import Guard, guarded
from ._guard_child import AGAIN_S, UNHEARD_S, kill_children

STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")  # not all on Windows
"""The signals that ask to stop."""

BEAT_S = 1.0
"""How often a stopping event loop says that it runs, in seconds."""

SLACK_S = 0.1
"""How much earlier than the guard the handler counts a time as over, in seconds."""


@final
class StopSignals:
    """Handles signals within ``heard()``.

    Attributes:
        is_final: Whether the next signal that asks to stop ends the process at once, whatever still
            runs.
    """

    def __init__(
        self,
        take: Callable[[int], None],
        *,
        others: Sequence[str] = (),
        last_words: Callable[[str], None] = write_to_stderr,
    ) -> None:
        """Prepare.

        Args:
            take: Called with each signal, on the event loop.
            others: The names of further signals that are passed on.
            last_words: Called before the process ends by force, with a line that says why, or with
                an empty text; restores the terminal.
        """
        self.is_final = False
        self._on_signal = take
        self._others = others
        self._last_words = last_words
        self._unheard_since_s: float | None = None
        self._asked: int | None = None
        self._limit_s: float | None = None
        self._alive_s = math.inf
        self._token: trio.lowlevel.TrioToken | None = None
        self._root: trio.lowlevel.Task | None = None
        self._guard = Guard()

    def make_final(self) -> None:
        """Let the next signal end the process at once, because nothing is left to interrupt."""
        self.is_final = True

    def count(self, number: int) -> None:
        """Count something else, such as a lost terminal, as a signal that asks to stop."""
        self._asked = number

    def limit(self, limit_s: float) -> None:
        """End the process by force if it has not ended this many seconds from now.

        A later limit never replaces an earlier one.
        """
        at_s = time.monotonic() + limit_s
        if self._limit_s is None:
            trio.lowlevel.spawn_system_task(self._beat)
        if self._limit_s is None or at_s < self._limit_s:
            self._limit_s = at_s
            self._guard.set_limit(limit_s)

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Handle signals; leaving the block restores the previous handlers.

        SIGHUP stays ignored if it was, as ``nohup`` has it.
        """
        self._token = trio.lowlevel.current_trio_token()
        self._root = trio.lowlevel.current_root_task()
        before: dict[int, Any] = {}
        stopping = _numbers(STOPPING)
        if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            stopping.remove(signal.SIGHUP)
        try:
            for number in (*stopping, *_numbers(self._others)):
                before[number] = signal.signal(number, self._handle)
            with guarded() as self._guard, self._guard.handled(set(stopping)):
                yield
        finally:
            self._guard = Guard()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number in _numbers(STOPPING):
            now_s = time.monotonic()
            if self._must_end(now_s):
                self._end(number, frame)
            self._asked = number
            if self._unheard_since_s is None:
                self._unheard_since_s = now_s
        assert self._token is not None
        try:
            self._token.run_sync_soon(self._hear, number)
        except trio.RunFinishedError:  # the event loop has ended
            self._end(number, None)

    def _must_end(self, now_s: float) -> bool:
        since_s, limit_s = self._unheard_since_s, self._limit_s
        is_unheard = since_s is not None and now_s - since_s >= AGAIN_S - SLACK_S
        is_late = limit_s is not None and now_s >= min(limit_s, self._alive_s + UNHEARD_S) - SLACK_S
        return self.is_final or is_unheard or is_late

    async def _beat(self) -> None:
        while True:
            self._alive_s = time.monotonic()
            self._guard.report_alive()
            await trio.sleep(BEAT_S)

    def _hear(self, number: int) -> None:
        self._unheard_since_s = None
        self._guard.report_heard()
        self._on_signal(number)

    def _end(self, number: int, frame: FrameType | None) -> None:
        """End the process now, with the code of the signal before this one if one has asked."""
        place = None if frame is None else place_of(frame) or _ignoring_place(self._root)
        self._last_words("" if place is None else f"error: ended by force; it was at {place}\n")
        kill_children(os.getpid(), spared=self._guard.pid)
        os._exit(128 + (self._asked or number))


def place_of(frame: FrameType) -> str | None:
    """Return where a stack is in the app's code, as Python writes it; ``None`` if it is not there.

    Args:
        frame: The innermost frame of the stack.
    """
    for one, line in traceback.walk_stack(frame):
        if is_of_app(one.f_code.co_filename):
            return _written(one.f_code, line)
    return None


def _ignoring_place(root: trio.lowlevel.Task | None) -> str | None:
    """Return where cancelled code of the app works on; ``None`` if there is none."""
    found = (app_code_of(task) for task in cancelled_tasks(root))
    return next((_written(*place) for place in found if place is not None), None)


def _written(code: CodeType, line: int) -> str:
    return f'File "{code.co_filename}", line {line}, in {code.co_qualname}'


def _numbers(names: Sequence[str]) -> list[int]:
    found = (getattr(signal, name, None) for name in names)
    return [number for number in found if number is not None]
