"""The errors of speech engines.

SpeechError
├── SpeechExtraError     (also an ImportError) the package of an extra is not installed
├── SpeechNotOpenError   an engine is used outside its ``async with engine.open()``
├── SpeechEngineError    the engine failed, or cannot load its model
└── SpeechWorkerError    a worker process died or hangs; the next use gets a new one
"""

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


class SpeechNotOpenError(SafeText, SpeechError):
    """An engine was used before it was opened or after it was closed."""

    def __init__(self, engine: str) -> None:
        super().__init__(f"{engine} is not open. Use it inside: async with engine.open():")


class SpeechEngineError(SpeechError):
    """The engine itself reported a failure."""


class SpeechWorkerError(SpeechError):
    """A worker process died in the middle of a text, or never started."""


def need(engine: str, package: str, extra: str) -> ModuleType:
    """Import a package that belongs to an extra.

    Raises:
        SpeechExtraError: It is not installed.
    """
    try:
        return import_module(package)
    except ImportError as error:
        raise SpeechExtraError(engine, package, extra) from error


def are_probabilities(*said: float) -> bool:
    """Whether the results of detectors are numbers that are not negative."""
    for one in said:
        try:
            if not one >= 0.0:
                return False
        except TypeError:
            return False  # None, or a coroutine
    return True


def no_probability(*said: tuple[object, float]) -> ValueError:
    """Return the error for the first detector that did not return a probability.

    NaN would be neither voice nor silence, so a turn would never end.

    Args:
        *said: Each detector and its result; at least one is not a probability.
    """
    detector, wrong = next(one for one in said if not are_probabilities(one[1]))
    return ValueError(f"{type(detector).__name__}.probability() is 0 to 1, not {wrong!r}")
