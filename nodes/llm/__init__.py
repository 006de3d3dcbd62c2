"""Language models: the `ChatModel` protocol and three implementations.

`OpenAIChat` uses any endpoint with OpenAI's chat completions API, and `AnthropicChat` Anthropic's
messages API (extra ``llm``). `LocalChat` runs a model file in a process of its own (extra
``local``).
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
    from ._anthropic_chat import AnthropicChat as AnthropicChat
    from ._http_chat import HttpLimits as HttpLimits
    from ._llama_cpp import LocalChat as LocalChat
    from ._openai_chat import OpenAIChat as OpenAIChat
else:  # a program that has a model of its own never loads an HTTP client or a process for it
    __getattr__ = lazy_imports(
        __name__,
        {
            "AnthropicChat": "._anthropic_chat",
            "HttpLimits": "._http_chat",
            "LocalChat": "._llama_cpp",
            "OpenAIChat": "._openai_chat",
        },
    )

__all__ = [
    "AnswerBrokenOffError",
    "AnswerPiece",
    "AnswerProgress",
    "AnswerStream",
    "AnthropicChat",
    "ChatModel",
    "ChatModelError",
    "ChatModelExtraError",
    "ChatModelTimeoutError",
    "EmptyAnswerError",
    "HttpLimits",
    "LocalChat",
    "OpenAIChat",
    "SpeechDelta",
    "TextDelta",
    "ToolCallRequest",
    "Usage",
    "extra_of",
]
