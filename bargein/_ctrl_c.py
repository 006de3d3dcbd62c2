"""Ctrl+C is one line and exit code 130 from here on, while a program of the command line loads.

Its work then runs in ``exit_code()``, which ends it in order.  What is left are a Ctrl+C in an
import, and one in code whose errors Python only shows, such as the callbacks of imports.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import TracebackType


def _install() -> None:
    uncaught, unraisable = sys.excepthook, sys.unraisablehook

    def end_or_show(
        kind: type[BaseException], error: BaseException, place: TracebackType | None
    ) -> None:
        if not issubclass(kind, KeyboardInterrupt):
            uncaught(kind, error, place)
        else:
            _end()

    def end_or_warn(what: UnraisableHookArgs) -> None:
        if not issubclass(what.exc_type, KeyboardInterrupt):
            unraisable(what)
        else:
            _end()

    sys.excepthook, sys.unraisablehook = end_or_show, end_or_warn


def _end() -> None:
    for stream, text in ((sys.stdout, ""), (sys.stderr, "interrupted\n")):
        try:
            stream.write(text)
            stream.flush()
        except (AttributeError, OSError, ValueError):  # nobody has to see it
            pass
    os._exit(130)


_install()
