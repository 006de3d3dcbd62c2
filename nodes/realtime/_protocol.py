"""What a model is that hears and speaks by itself: its codec, and the facts of its responses.

Rule 1. A codec does no I/O: it makes the vendor's messages, and facts of its messages.
Rule 2. The model answers only when it is asked to, and is cut only when it is told to: whoever
takes the turns of the call decides, whatever the vendor detects.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import trio

from bargein.bridge.websocket import ConnectionClosedError
from bargein.nodes.llm import ToolCallRequest, Usage
from bargein.nodes.speech import EarFact
from bargein.nodes.vendors import SessionLimits, VendorAddress, VendorError


@dataclass(frozen=True, slots=True)
class AudioCommitted:
    """A stretch of the caller's voice is part of the conversation, as an item of this name."""

    item: str
    after: str = ""
    """What stands before it: an item, ``root`` for nothing; empty where the vendor does not
    tell."""


@dataclass(frozen=True, slots=True)
class ResponseBegan:
    """The model begins a response."""

    response: str
    """The vendor's name of it."""
    ask: str = ""
    """The name that it was asked for by; empty where the vendor does not tell."""


@dataclass(frozen=True, slots=True)
class ItemAdded:
    """A part of a response begins."""

    response: str
    item: str
    tool: str = ""
    """The tool that it calls; empty for speech and text."""


@dataclass(frozen=True, slots=True)
class SpeechGiven:
    """Some audio of an item."""

    response: str
    item: str
    pcm: bytes
    """PCM16 little-endian mono, at the codec's ``output_rate_hz``."""


@dataclass(frozen=True, slots=True)
class TextGiven:
    """Some text of an item, or of what its audio says."""

    response: str
    item: str
    text: str


@dataclass(frozen=True, slots=True)
class CallAsked:
    """The model wants a tool to be called."""

    response: str
    item: str
    request: ToolCallRequest


@dataclass(frozen=True, slots=True)
class ResponseOver:
    """Nothing more of a response will come."""

    response: str
    usage: Usage
    error: VendorError | None = None
    """Why it failed; None if it did not."""


@dataclass(frozen=True, slots=True)
class AskRefused:
    """The vendor refuses to give a response."""

    ask: str
    error: VendorError


RealtimeFact = (
    AudioCommitted
    | ResponseBegan
    | ItemAdded
    | SpeechGiven
    | TextGiven
    | CallAsked
    | ResponseOver
    | AskRefused
)
"""What a model tells of its side of the conversation."""


class RealtimeCodec(Protocol):
    """The messages of one vendor, for one call."""

    @property
    def input_rate_hz(self) -> int:
        """The rate of the audio that the vendor takes."""
        ...

    @property
    def output_rate_hz(self) -> int:
        """The rate of the audio that the vendor gives."""
        ...

    def configure(
        self,
        instructions: str,
        tools: Sequence[Mapping[str, Any]],
        *,
        detects: bool,
        speaks: bool,
    ) -> Sequence[str]:
        """Return the messages that a line begins with; sent again, they change the session.

        Args:
            instructions: The system prompt.
            tools: As ``{"type": "function", "function": {...}}``.
            detects: Whether the vendor tells when the caller's turns begin and end.
            speaks: Whether the model answers with speech; otherwise with text.
        """
        ...

    def audio(self, pcm: bytes) -> str:
        """Return the message that brings the caller's audio, at ``input_rate_hz``."""
        ...

    def commit(self) -> str:
        """Return the message that makes the audio so far an item of the conversation."""
        ...

    def clear(self) -> str:
        """Return the message that drops the audio that is no item yet."""
        ...

    def add(self, chat: Sequence[Mapping[str, Any]], after: str = "") -> Sequence[str]:
        """Return the messages that add a chat to the conversation.

        Args:
            chat: Messages as OpenAI's chat completions take them.
            after: The item behind which they are put, ``root`` for the beginning; empty for the
                end.
        """
        ...

    def respond(self, ask: str) -> str:
        """Return the message that asks for a response, under a name of ours."""
        ...

    def cancel(self, response: str) -> str:
        """Return the message that ends a response."""
        ...

    def truncate(self, item: str, heard_ms: int) -> str:
        """Return the message that takes out of an item what was not heard of its audio."""
        ...

    def delete(self, item: str) -> str:
        """Return the message that takes an item out of the conversation."""
        ...

    def facts(self, message: Mapping[str, Any]) -> Iterable[RealtimeFact | EarFact]:
        """Yield what a message tells.

        Args:
            message: A JSON object; nothing of it is certain.

        Raises:
            VendorError: The session is over; `retryable` if another line may go on with it.
            Exception: `message` is none of its messages: KeyError, TypeError, ValueError.
        """
        ...

    def restart(self) -> None:
        """Forget all: the vendor begins anew on another line."""
        ...


class RealtimeModel(Protocol):
    """A model that hears and speaks by itself.  Shared by all calls."""

    @property
    def address(self) -> VendorAddress:
        """Where it is reached, and with which key; its greeting is the codec's."""
        ...

    @property
    def limits(self) -> SessionLimits:
        """What a session may take."""
        ...

    @property
    def dial(self) -> Callable[[], Awaitable[trio.abc.Stream]] | None:
        """Opens the stream that carries a line; None dials the address."""
        ...

    def judge(self, closed: ConnectionClosedError) -> VendorError | None:
        """Say what a close of the vendor's means; see `open_session`."""
        ...

    def new_codec(self) -> RealtimeCodec:
        """Return the codec of one call."""
        ...
