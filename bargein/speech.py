"""Ears and voices."""

import bargein.nodes.speech as _nodes_speech

from .nodes.speech import *

_WORKERS = (
    "part of WorkerVoice now, with the arguments of WorkerSettings, workers= for its size= and no "
    "cancel_s=: from bargein.speech import WorkerVoice"
)
TYPE_CHECKING = False
if not TYPE_CHECKING:  # to a type checker, a module with __getattr__ has every name

    def __getattr__(name: str) -> object:
        is_now = {
            "StreamingSpeech": "Speech now, with the same arguments: "
            "from bargein.speech import Speech",
            "StreamingEar": "Hearing(bridge, ear) now, which also has a recogniser or a detector "
            "of ours: from bargein.speech import Hearing",
            "StreamingSTT": "Ear now: from bargein.speech import Ear",
            "SpeechToText": "Recogniser now: from bargein.speech import Recogniser",
            "WorkerPool": _WORKERS,
            "WorkerSettings": _WORKERS,
        }
        if name in is_now:
            raise ImportError(f"{name} is {is_now[name]}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__: list[str] = []
__all__ += _nodes_speech.__all__
