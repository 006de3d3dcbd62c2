"""What a language model is: one method, and the things that its answer is made of."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text; join pieces without separators."""

    text: str
    """Never empty."""


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """A tool call by the model; yielded only once it is complete."""

    id: str
    """Ties the result to the call; made up where the server gives none."""
    name: str
    arguments: Mapping[str, Any] | None
    """The arguments; None when `raw` is no JSON object, so that the model can be told."""
    raw: str
    """The arguments as the model wrote them."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost and why it ended; the last piece of every complete answer."""

    input_tokens: int | None = None
    """Tokens of the messages; None where the server does not say."""
    output_tokens: int | None = None
    """Tokens of the answer; None where the server does not say."""
    cached_tokens: int | None = None
    """Those of `input_tokens` that needed no work again; None where the server does not say."""
    finish_reason: str = ""
    """In the server's word: "stop", "length", "tool_calls", "content_filter"; may be empty."""


@dataclass(frozen=True, slots=True)
class AnswerProgress:
    """What the model is doing while it writes text that is not for the caller; optional."""

    phase: Literal["thinking", "tool_call"]
    """``thinking``: it reasons; ``tool_call``: it writes the call of a tool."""
    label: str = ""
    """The name of the tool; empty while it reasons."""


@dataclass(frozen=True, slots=True)
class SpeechDelta:
    """A piece of the answer's audio, from a model that speaks; the text comes before it."""

    pcm: bytes
    """PCM16 little-endian mono; pieces are joined as they are."""
    sample_rate_hz: int
    item: str = ""
    """The vendor's name of what it is a part of."""


AnswerPiece = TextDelta | ToolCallRequest | Usage | AnswerProgress | SpeechDelta
"""What an answer is made of."""


def no_piece(model: object, piece: object) -> str:
    """Return what is wrong with something that is no piece of an answer."""
    wanted = "TextDelta, ToolCallRequest, AnswerProgress or Usage"
    return f"{type(model).__name__}.stream() yielded {type(piece).__name__}; it yields {wanted}"


@runtime_checkable
class ChatModel(Protocol):
    """A language model that answers a chat; shared by all calls."""

    def stream(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> AsyncIterator[AnswerPiece]:
        """Yield an answer piece by piece, as the model generates it.

        Args:
            messages: The chat so far, as OpenAI's chat completions take it
                (``{"role": "user", "content": "Hi"}``).
            tools: What the model may call, as ``{"type": "function", "function": {...}}``.

        Returns:
            Text as it arrives, then the complete tool calls, then one ``Usage``; an
            ``AnswerProgress`` wherever the model switches to output that is not for the caller.
            Cancelling, leaving the loop and closing the iterator are all safe and free the model at
            once; an incomplete tool call is dropped.

        Raises:
            ChatModelError: While iterating; what was yielded before stays valid.
        """
        ...
