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
