"""What is raised when speech cannot be had, and when the package of an extra is missing."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from bargein.routes import BargeinError, SafeText


class SpeechError(BargeinError):
    """A speech engine cannot do what was requested."""


class SpeechExtraError(SafeText, SpeechError, ImportError):
    """A package that belongs to an extra of bargein is not installed."""

    def __init__(self, engine: str, package: str, extra: str) -> None:
        super().__init__(
            f'{engine} needs the package {package!r}. Run: pip install "bargein[{extra}]"'
        )
        self.extra = extra


def need(engine: str, package: str, extra: str) -> ModuleType:
    """Import a package that belongs to an extra.

    Raises:
        SpeechExtraError: It is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise SpeechExtraError(engine, package, extra) from error
