"""The logger of all our modules: a log that cannot be written is no error of the code that logs.

The set-up of the logs is the user's: a processor may raise, a stream be closed, a renderer fail at
a value.  Then the line is lost, standard error says so once, and the work goes on.
"""

from __future__ import annotations

import os
import select
import sys
import traceback
from contextlib import suppress
from typing import Any, final

import structlog


def get_logger() -> Logger:
    """Return a logger whose methods raise nothing but what stops a program or a task.

    It may be called at import: what is configured later counts.
    """
    return Logger()


@final
class Logger:
    """Logs by whatever structlog is configured to do."""

    __slots__ = ("_lazy",)

    def __init__(self) -> None:
        """Configure nothing; structlog's own logger does that at its first line."""
        self._lazy = structlog.get_logger()  # noqa: TID251  # here it is contained

    def debug(self, event: str, /, **keys: Any) -> None:
        """Log what helps to find a fault."""
        self._write("debug", event, keys)

    def info(self, event: str, /, **keys: Any) -> None:
        """Log what happened in order."""
        self._write("info", event, keys)

    def warning(self, event: str, /, **keys: Any) -> None:
        """Log what somebody should look at."""
        self._write("warning", event, keys)

    def error(self, event: str, /, **keys: Any) -> None:
        self._write("error", event, keys)

    def exception(self, event: str, /, **keys: Any) -> None:
        """Log what failed, with the exception that is being handled."""
        self._write("exception", event, keys)

    def _write(self, method: str, event: str, keys: dict[str, Any]) -> None:
        try:
            getattr(self._lazy, method)(event, **keys)
        except Exception as error:  # noqa: BLE001  # the user's set-up may raise anything
            _report_loss(error)


_is_reported = False


def _report_loss(error: Exception) -> None:
    """Say that a line could not be written, without its text, which may quote people."""
    global _is_reported
    if not _is_reported:
        _is_reported = True
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        write_to_stderr(
            f"error: a log line is lost, and so may be others: its set-up raised "
            f'{type(error).__name__} at File "{frame.f_code.co_filename}", line {line}\n'
        )


def write_to_stderr(text: str) -> None:
    """Write a line to standard error if it accepts output now: it may be gone or blocked."""
    with suppress(OSError, ValueError):
        if sys.__stderr__ is not None and select.select([], [2], [], 0)[1]:
            os.write(2, text.encode(errors="replace"))


# To find where a line was logged, structlog passes over its own modules, which it knows by this
# name: it names loggers of the standard library by what it finds, and `CallsiteParameterAdder`
# writes it.
__name__ = "structlog.contained"
