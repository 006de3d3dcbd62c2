"""Becomes a command, after what only the process itself can do.

Run as a script, ``python -I -S _launch_child.py terminal|plain PROGRAM ARGUMENT …``, as the leader
of a new session: code between fork and exec is not safe in a program that has threads.
"""

from __future__ import annotations

import os
import signal
import sys


def main(how: str, command: list[str]) -> None:
    """Get ready, and become the command.

    Args:
        how: "terminal" to take standard input as the session's terminal, or "plain".
        command: Its program and arguments.
    """
    if how == "terminal":
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    # What is ignored stays so in the program: SIGINT comes ignored from a shell's background job,
    # the others are ignored by Python.
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        # The numbers that a shell gives (POSIX, Shell Command Language 2.8.2).
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
