"""A pseudo-terminal for a process, to capture what it writes to its terminal."""

from __future__ import annotations

import os
import sys

TERM = "dumb"
"""A terminal type without capabilities, so that programs write plain text."""
ROWS, COLUMNS = 24, 80
"""The size of a VT100, which programs assume if they cannot ask."""


def open_terminal() -> tuple[int, int]:
    """Open a pair of descriptors: one to read from, and the process's terminal.

    The terminal echoes nothing, keeps line ends as they are, and has no keyboard: reading from it
    returns end of file at once.

    Raises:
        OSError: The system has no more terminals, or none at all.
    """
    if sys.platform == "win32":
        raise OSError("tty=True needs a POSIX system: leave it out on Windows")
    import termios

    ours, theirs = os.openpty()
    try:
        settings = termios.tcgetattr(theirs)
        settings[1] &= ~termios.OPOST
        settings[3] &= ~(termios.ECHO | termios.ICANON)
        settings[6][termios.VMIN] = settings[6][termios.VTIME] = 0
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
        termios.tcsetwinsize(theirs, (ROWS, COLUMNS))
    except BaseException:
        os.close(ours)
        os.close(theirs)
        raise
    return ours, theirs
