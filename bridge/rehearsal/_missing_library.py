"""The libraries that a rehearsal needs besides the core, and the error for a missing one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from bargein.routes import BargeinError, SafeText


class RehearsalExtraError(SafeText, BargeinError, ImportError):
    """A library of the extra ``demo`` is not installed."""

    def __init__(self, library: str, purpose: str) -> None:
        super().__init__(
            f'{purpose} needs {library!r}, which is not installed: pip install "bargein[demo]"'
        )
        self.library = library


def need(library: str, purpose: str) -> Any:
    """Return a library of the extra ``demo``.

    Raises:
        RehearsalExtraError: It is not installed.
    """
    try:
        return import_module(library)
    except ModuleNotFoundError as error:
        raise RehearsalExtraError(library, purpose) from error
