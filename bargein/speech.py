"""Ears and voices."""

import bargein.nodes.speech as _nodes_speech

from .nodes.speech import *

TYPE_CHECKING = False
if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name

    def __getattr__(name: str) -> object:
        if name == "StreamingSpeech":
            raise ImportError(
                "StreamingSpeech is Speech now, with the same arguments: "
                "from bargein.speech import Speech"
            )
        if name in ("WorkerPool", "WorkerSettings"):
            raise ImportError(
                f"{name} is part of WorkerVoice now, with the arguments of WorkerSettings, "
                "workers= for its size= and no cancel_s=: from bargein.speech import WorkerVoice"
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__: list[str] = []
__all__ += _nodes_speech.__all__
