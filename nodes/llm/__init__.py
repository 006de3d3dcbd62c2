"""Language models: the `ChatModel` protocol, the base of models over HTTP, and a local one.

`LocalChat` runs a model file in a process of its own (extra ``local``); the models of vendors are
in `bargein.nodes.vendors`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.bridge.history import extra_of as extra_of
from bargein.routes.lazy_imports import lazy_imports

from ._answer_stream import AnswerStream as AnswerStream
from ._errors import AnswerBrokenOffError as AnswerBrokenOffError
from ._errors import ChatModelError as ChatModelError
from ._errors import ChatModelExtraError as ChatModelExtraError
from ._errors import ChatModelTimeoutError as ChatModelTimeoutError
from ._errors import EmptyAnswerError as EmptyAnswerError
from ._protocol import AnswerPiece as AnswerPiece
from ._protocol import AnswerProgress as AnswerProgress
from ._protocol import ChatModel as ChatModel
from ._protocol import SpeechDelta as SpeechDelta
from ._protocol import TextDelta as TextDelta
from ._protocol import ToolCallRequest as ToolCallRequest
from ._protocol import Usage as Usage

if TYPE_CHECKING:
    from ._local_chat import LocalChat as LocalChat
    from .http_chat import HttpLimits as HttpLimits
else:  # a program that has a model of its own never loads an HTTP client or a process for it
    __getattr__ = lazy_imports(
        __name__,
        {
            "HttpLimits": ".http_chat",
            "LocalChat": "._local_chat",
        },
    )

__all__ = [
    "AnswerBrokenOffError",
    "AnswerPiece",
    "AnswerProgress",
    "AnswerStream",
    "ChatModel",
    "ChatModelError",
    "ChatModelExtraError",
    "ChatModelTimeoutError",
    "EmptyAnswerError",
    "HttpLimits",
    "LocalChat",
    "SpeechDelta",
    "TextDelta",
    "ToolCallRequest",
    "Usage",
    "extra_of",
]
