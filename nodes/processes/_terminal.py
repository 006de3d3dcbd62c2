"""A terminal of its own for a process, so that what it writes to one is captured as well."""

from __future__ import annotations

import os
import sys

TERM = "dumb"
"""What programs are told the terminal can do: nothing, so that they write plain text."""
ROWS, COLUMNS = 24, 80
"""The size of the VT100, which is what programs assume where they cannot ask."""


def open_terminal() -> tuple[int, int]:
    """Open a pair of descriptors: ours to read, and the process's terminal.

    The terminal echoes nothing, changes no line end, and has nobody at its keyboard: reading from
    it ends at once.

    Raises:
        OSError: There are no more terminals, or the platform has none.
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
