"""The errors of speech engines.

SpeechError
├── SpeechExtraError     (also an ImportError) the package of an extra is not installed
├── SpeechNotOpenError   an engine is used outside its ``async with engine.open()``
├── SpeechEngineError    the engine failed, or cannot load its model
└── SpeechWorkerError    a worker process died or hangs; the next use gets a new one
"""

from __future__ import annotations

from bargein.bridge.audio.errors import SpeechError as SpeechError
from bargein.bridge.audio.errors import SpeechExtraError as SpeechExtraError
from bargein.bridge.audio.errors import need as need
from bargein.routes import SafeText


class SpeechNotOpenError(SafeText, SpeechError):
    """An engine was used before it was opened or after it was closed."""

    def __init__(self, engine: str) -> None:
        super().__init__(f"{engine} is not open. Use it inside: async with engine.open():")


class SpeechEngineError(SpeechError):
    """The engine itself reported a failure."""


class SpeechWorkerError(SpeechError):
    """A worker process died in the middle of a text, or never started."""


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
