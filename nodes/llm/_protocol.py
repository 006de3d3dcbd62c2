"""The protocol of a language model: one method, and the pieces of its answer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from bargein.bridge.validation.foreign_data import clean_json, clean_text


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of the answer's text; join pieces without separators."""

    text: str
    """Never empty; lone surrogates and control characters are replaced."""

    def __post_init__(self) -> None:
        if isinstance(self.text, str) and not self.text.isprintable():
            object.__setattr__(self, "text", clean_text(self.text))


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """A tool call by the model; yielded only once it is complete."""

    id: str
    """Links the result to the call; generated if the server sends none."""
    name: str
    arguments: Mapping[str, Any] | None
    """The arguments; ``None`` if `raw` is not a JSON object, or one that is nested too deep."""
    raw: str
    """The arguments as the model wrote them."""
    provider: str = field(default="", repr=False, compare=False)
    """The model's name for where `extra` came from, such as its class and address; empty without
    such fields."""
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The provider's own fields of the call and its message, as JSON: they go through the history
    to models, which find them by ``extra_of(call, provider)``.  Nobody else sees them."""

    def __post_init__(self) -> None:
        for name in ("id", "name", "raw"):
            text = getattr(self, name)
            if isinstance(text, str) and not text.isprintable():
                object.__setattr__(self, name, clean_text(text))
        if isinstance(self.arguments, Mapping):
            object.__setattr__(self, "arguments", _readable(self.arguments))


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer cost and why it ended; the last piece of every complete answer."""

    input_tokens: int | None = None
    """Tokens of the messages; ``None`` if the server does not say."""
    output_tokens: int | None = None
    """Tokens of the answer; ``None`` if the server does not say."""
    cached_tokens: int | None = None
    """Tokens of `input_tokens` that came from the cache; ``None`` if the server does not say."""
    finish_reason: str = ""
    """The server's word: "stop", "length", "tool_calls", "content_filter"; may be empty."""


@dataclass(frozen=True, slots=True)
class AnswerProgress:
    """What the model is doing while it writes text that is not for the caller; optional."""

    phase: Literal["thinking", "tool_call"]
    """``thinking``: the model reasons; ``tool_call``: it writes a tool call."""
    label: str = ""
    """The name of the tool; empty while the model reasons."""

    def __post_init__(self) -> None:
        if isinstance(self.label, str) and not self.label.isprintable():
            object.__setattr__(self, "label", clean_text(self.label))


@dataclass(frozen=True, slots=True)
class SpeechDelta:
    """A piece of the answer's audio, from a model that speaks; the text comes before it."""

    pcm: bytes
    """PCM16 little-endian mono; pieces are joined as they are."""
    sample_rate_hz: int
    item: str = ""
    """The vendor's id of the item that the audio belongs to."""


AnswerPiece = TextDelta | ToolCallRequest | Usage | AnswerProgress | SpeechDelta
"""A piece of an answer."""


def _readable(arguments: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return arguments with their texts cleaned; ``None`` for those that nothing can show."""
    try:
        cleaned: Mapping[str, Any] = clean_json(arguments)
    except ValueError:
        return None
    return cleaned


def no_piece(model: object, piece: object) -> str:
    """Return the error message for something that is not a piece of an answer."""
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
            messages: The chat so far, in the format of OpenAI's chat completions (``{"role":
                "user", "content": "Hi"}``).
            tools: The tools that the model may call, as ``{"type": "function", "function":
                {...}}``.

        Returns:
            Text as it arrives, then the complete tool calls, then one ``Usage``; an
            ``AnswerProgress`` wherever the model switches to output that is not for the caller.
            Cancelling, leaving the loop and closing the iterator are all safe and free the model at
            once; an incomplete tool call is dropped.

        Raises:
            ChatModelError: While iterating; what was yielded before stays valid.
        """
        ...
