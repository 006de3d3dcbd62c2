"""Prepares its process, then becomes the command.

Run as a script, ``python -I -S _launch_child.py terminal|plain PROGRAM ARGUMENT …``, as the leader
of a new session, because code between fork and exec is not safe in a program with threads.
"""

from __future__ import annotations

import os
import signal
import sys


def main(how: str, command: list[str]) -> None:
    """Prepare the process and become the command.

    Args:
        how: "terminal" to take standard input as the session's terminal, or "plain".
        command: Its program and arguments.
    """
    if how == "terminal":
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # Ignored signals stay ignored in the program: a shell's background job starts with SIGINT
    # ignored, and Python ignores the others.
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        # The exit codes of a shell (POSIX, Shell Command Language 2.8.2).
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
