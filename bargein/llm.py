"""Language models."""

from .nodes.llm import AnswerBrokenOffError as AnswerBrokenOffError
from .nodes.llm import AnswerPiece as AnswerPiece
from .nodes.llm import AnswerProgress as AnswerProgress
from .nodes.llm import AnswerStream as AnswerStream
from .nodes.llm import ChatModel as ChatModel
from .nodes.llm import ChatModelError as ChatModelError
from .nodes.llm import ChatModelExtraError as ChatModelExtraError
from .nodes.llm import ChatModelTimeoutError as ChatModelTimeoutError
from .nodes.llm import EmptyAnswerError as EmptyAnswerError
from .nodes.llm import HttpLimits as HttpLimits
from .nodes.llm import LocalChat as LocalChat
from .nodes.llm import SpeechDelta as SpeechDelta
from .nodes.llm import TextDelta as TextDelta
from .nodes.llm import ToolCallRequest as ToolCallRequest
from .nodes.llm import Usage as Usage
from .nodes.llm import extra_of as extra_of
from .nodes.vendors.anthropic.chat import AnthropicChat as AnthropicChat
from .nodes.vendors.azure.chat import AzureChat as AzureChat
from .nodes.vendors.gemini.chat import GeminiChat as GeminiChat
from .nodes.vendors.openai.chat import OpenAIChat as OpenAIChat

__all__ = [
    "AnswerBrokenOffError",
    "AnswerPiece",
    "AnswerProgress",
    "AnswerStream",
    "AnthropicChat",
    "AzureChat",
    "ChatModel",
    "ChatModelError",
    "ChatModelExtraError",
    "ChatModelTimeoutError",
    "EmptyAnswerError",
    "GeminiChat",
    "HttpLimits",
    "LocalChat",
    "OpenAIChat",
    "SpeechDelta",
    "TextDelta",
    "ToolCallRequest",
    "Usage",
    "extra_of",
]
