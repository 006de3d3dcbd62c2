"""The terminal, set up for a console and always put back as it was."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

SMALLEST = (20, 3)
"""Columns and rows below which a window is treated as if it had them."""

_PASTES_TOLD = "\x1b[?2004h"
_AS_BEFORE = "\x1b[?2004l\x1b[?25h\x1b[0m"
"""Pastes are no longer told apart; the cursor shows; no colour."""

WRITE_S = 0.2
"""For how long a terminal that takes nothing is waited for when it is put back."""


def is_capable(environment: Mapping[str, str]) -> bool:
    """Whether standard input and output are one terminal with a cursor that can be moved.

    Args:
        environment: Of the process; ``TERM`` tells what terminal it is.
    """
    if sys.platform == "win32":
        return False  # its console has no termios; there it is used line by line
    if environment.get("TERM", "dumb") in ("dumb", ""):
        return False
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


@dataclass(slots=True)
class Terminal:
    """A terminal whose keys come one by one, without echo.

    Attributes:
        input: Its file descriptor for reading.
        output: Its file descriptor for writing; that of ``sys.stdout`` may be redirected.
        encoding: Of what is written.
    """

    input: int
    output: int
    encoding: str = "utf-8"
    _waiting: str = ""
    _writing: threading.Lock = field(default_factory=threading.Lock)
    _before: list[Any] = field(default_factory=list)
    _is_ours: bool = False

    def size(self) -> tuple[int, int]:
        """Return how many columns and rows there are."""
        try:
            columns, rows = os.get_terminal_size(self.output)
        except OSError:
            columns, rows = 80, 24
        return max(SMALLEST[0], columns or 80), max(SMALLEST[1], rows or 24)

    def set_up(self) -> None:
        """Set it up; used again after the shell had it.

        Signals of keys stay on, so that Ctrl+C is heard whatever the program is doing.
        """
        import termios  # not on Windows

        if not self._before:
            self._before = termios.tcgetattr(self.input)
        mode: list[Any] = [*self._before[:6], list(self._before[6])]
        # Enter is told from Ctrl+J, and Ctrl+S is a key, not the end of all output.
        mode[0] &= ~(termios.ICRNL | termios.INLCR | termios.IGNCR | termios.IXON)
        # What was typed before a Ctrl+C is kept.
        mode[3] = mode[3] & ~(termios.ECHO | termios.ICANON | termios.IEXTEN) | termios.NOFLSH
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        self._is_ours = True
        with suppress(termios.error):  # it is gone: whoever reads its keys will see
            termios.tcsetattr(self.input, termios.TCSANOW, mode)
        self._write_briefly(_PASTES_TOLD)

    def give_back(self) -> None:
        """Put it back as it was; may be called at any time, from a signal handler too."""
        if not self._is_ours:
            return
        import termios

        self._is_ours = False
        self._write_briefly(_AS_BEFORE)
        with suppress(termios.error):
            termios.tcsetattr(self.input, termios.TCSANOW, self._before)

    def put(self, text: str) -> None:
        """Keep a text for ``write_out()``."""
        self._waiting += text

    def write_out(self) -> None:
        """Write what was put; for a thread, since it waits while the terminal takes nothing.

        Raises:
            OSError: The terminal is gone.
        """
        with self._writing:
            text, self._waiting = self._waiting, ""
            data = memoryview(text.encode(self.encoding, "replace"))
            while data:
                data = data[os.write(self.output, data) :]

    def write_last(self, text: str) -> None:
        """Write what was put and a text behind it, as far as the terminal takes it."""
        is_free = self._writing.acquire(timeout=WRITE_S)
        text, self._waiting = self._waiting + text, ""
        self._write_briefly(text)
        if is_free:
            self._writing.release()

    def _write_briefly(self, text: str) -> None:
        """Write as far as a terminal takes it that may be gone, or held."""
        data = memoryview(text.encode(self.encoding, "replace"))
        with suppress(OSError):
            while data and select.select([], [self.output], [], WRITE_S)[1]:
                # So little never waits once there is room for something.
                data = data[os.write(self.output, data[:512]) :]


@contextmanager
def opened_terminal() -> Iterator[Terminal]:
    """Set the terminal of the process up, and put it back however the block is left."""
    terminal = Terminal(os.dup(0), os.dup(1), sys.stdout.encoding)
    try:
        terminal.set_up()
        yield terminal
    finally:
        terminal.give_back()
        os.close(terminal.input)
        os.close(terminal.output)
