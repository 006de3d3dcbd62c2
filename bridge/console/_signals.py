"""Passes a terminal's signals to the event loop, in order of arrival."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, final

import trio

UNHEARD = 3
"""After this many Ctrl+C that the event loop did not handle, it hangs, and is ended by force."""

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP", "SIGWINCH", "SIGTSTP", "SIGCONT")  # not all on Windows


@final
class Signals:
    """Handles signals within ``heard()``.

    Attributes:
        is_final: Whether the next Ctrl+C ends the process at once, whatever still runs.
    """

    def __init__(self, take: Callable[[int], None], give_back: Callable[[], None]) -> None:
        """Prepare.

        Args:
            take: Called with each signal, on the event loop.
            give_back: Restores the terminal before the process ends by force.
        """
        self.is_final = False
        self._on_signal = take
        self._restore_terminal = give_back
        self._unheard = 0
        self._token: trio.lowlevel.TrioToken | None = None

    def make_final(self) -> None:
        """Let the next Ctrl+C end the process at once, because nothing is left to interrupt."""
        self.is_final = True

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Handle signals; leaving the block restores the previous handlers."""
        self._token = trio.lowlevel.current_trio_token()
        before: dict[int, Any] = {}
        try:
            for name in _NAMES:
                number = getattr(signal, name, None)
                if number is not None:
                    before[number] = signal.signal(number, self._handle)
            if hasattr(signal, "SIGQUIT"):
                before[signal.SIGQUIT] = signal.signal(signal.SIGQUIT, self._quit)
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def stop_process(self) -> None:
        """Stop the process as Ctrl+Z does, until it is continued."""
        before = {
            signal.SIGTSTP: signal.signal(signal.SIGTSTP, signal.SIG_DFL),
            signal.SIGCONT: signal.signal(signal.SIGCONT, signal.SIG_IGN),
        }
        os.kill(os.getpid(), signal.SIGTSTP)
        for number, handler in before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            self._unheard += 1
            if self.is_final or self._unheard >= UNHEARD:
                self._restore_terminal()
                os._exit(128 + number)
        assert self._token is not None
        try:
            self._token.run_sync_soon(self._hear, number)
        except trio.RunFinishedError:  # the event loop has ended
            self._restore_terminal()
            os._exit(128 + number)

    def _hear(self, number: int) -> None:
        if number == signal.SIGINT:
            self._unheard = 0
        self._on_signal(number)

    def _quit(self, number: int, frame: FrameType | None) -> None:
        """End at once, as Ctrl+backslash does by default, but restore the terminal."""
        self._restore_terminal()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
