"""The native protocol, version 1: bytes and text to typed messages and back, without I/O.

This module alone validates what the other side sends.  It ignores unknown fields, so that newer
peers are understood; everything else that is wrong raises ``ProtocolViolationError``.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

from pydantic import Field, ValidationError, field_validator
from pydantic_core import from_json

from ..events import Button, CallState
from ..text_validation import is_blank
from ._connection_messages import INPUT_RATE_HZ as INPUT_RATE_HZ
from ._connection_messages import OUTPUT_RATE_HZ as OUTPUT_RATE_HZ
from ._connection_messages import PROTOCOL_VERSION as PROTOCOL_VERSION
from ._connection_messages import Ended as Ended
from ._connection_messages import Hello as Hello
from ._connection_messages import Resume as Resume
from ._connection_messages import Resumed as Resumed
from ._handle_messages import (
    AnswerPermission,
    AnswerQuestion,
    AskSnapshot,
    DescribeVerb,
    Description,
    HandleMessage,
    SnapshotMessage,
    UseVerb,
    VerbReceipt,
    VerbSettled,
)
from ._message_base import ErrorCode as ErrorCode
from ._message_base import JsonObject, Milliseconds, Request, Utterance, Wire
from ._message_base import ProtocolViolationError as ProtocolViolationError
from ._watch_messages import Seen, Watch, Watching, WatchMessage

BYTES_PER_INPUT_MS = INPUT_RATE_HZ * 2 // 1000
MAX_INPUT_BYTES = 100 * BYTES_PER_INPUT_MS
"""Largest binary frame of a client, in bytes: 100 ms of PCM16 at 16 kHz."""
_HEADER = struct.Struct("<I")


# --- client to server ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallerAudio:
    """Microphone audio: 1 to 100 ms of PCM16 little-endian mono at 16 kHz."""

    pcm: bytes


class PlaybackReport(Wire):
    """How far the client has played an utterance."""

    type: Literal[
        "playback.start",
        "playback.position",
        "playback.done",
        "playback.underrun",
        "playback.flushed",
    ]
    utterance: Utterance
    played_ms: Milliseconds
    """How much audio of that utterance has left the loudspeaker."""
    queued_ms: Milliseconds | None = None
    """How much audio waits in the player; absent if the client does not say."""
    request: Request | None = None
    """The request of the ``clear`` that ``playback.flushed`` answers."""
    underruns: Annotated[int, Field(ge=0)] | None = None
    """How often the player has run out of audio in this call; absent if the client does not
    say."""
    received: Annotated[int, Field(ge=0)] | None = None
    """As in ``Ping``."""

    @property
    def kind(self) -> Literal["start", "position", "done", "underrun", "flushed"]:
        """The type without its prefix."""
        return self.type.partition(".")[2]  # type: ignore[return-value]  # by the Literal above


class TextInput(Wire):
    """What the caller typed."""

    type: Literal["text"] = "text"
    text: Annotated[str, Field(min_length=1, max_length=10_000)]

    @field_validator("text")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if is_blank(text):
            raise ValueError("it says nothing")
        return text


class KeyPress(Wire):
    """The caller pressed a key of the telephone keypad."""

    type: Literal["dtmf"] = "dtmf"
    button: Button


class CustomInput(Wire):
    """Data that only your client and your agent understand."""

    type: Literal["custom"] = "custom"
    metadata: JsonObject


class Mute(Wire):
    """Turns the microphone off or on; while it is off, the agent hears silence."""

    type: Literal["mute"] = "mute"
    on: bool


class Talk(Wire):
    """The push-to-talk key was pressed or released."""

    type: Literal["talk"] = "talk"
    down: bool


class Stop(Wire):
    """The caller pressed Stop."""

    type: Literal["stop"] = "stop"


class HangUp(Wire):
    """Ends the call."""

    type: Literal["hangup"] = "hangup"


class Ping(Wire):
    """Asks for a ``pong`` with the same ``t``."""

    type: Literal["ping"] = "ping"
    t: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    received: Annotated[int, Field(ge=0)] | None = None
    """How many JSON messages the client has received, counted as in ``Resume``; the server no
    longer keeps them for a resumed call."""


ClientMessage = (
    CallerAudio
    | PlaybackReport
    | TextInput
    | KeyPress
    | CustomInput
    | Mute
    | Talk
    | Stop
    | HangUp
    | Ping
    | HandleMessage
    | WatchMessage
    | Resume
)


# --- server to client ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AgentFrame:
    """The agent's audio: PCM16 little-endian mono at 24 kHz, of any length."""

    utterance: int
    pcm: bytes


class Clear(Wire):
    """Orders the player to drop all audio up to and including this utterance, now and later."""

    type: Literal["clear"] = "clear"
    utterance: Utterance
    request: Request
    reason: str


class Hold(Wire):
    """Orders the player to hold at its next sample, or to resume from there."""

    type: Literal["hold"] = "hold"
    on: bool


class UtteranceEnd(Wire):
    """All audio of an utterance has been sent."""

    type: Literal["utterance.end"] = "utterance.end"
    utterance: Utterance


class Transcript(Wire):
    """What the user said, or words that the agent generated, to append to the earlier ones."""

    type: Literal["transcript"] = "transcript"
    role: Literal["user", "agent"]
    text: str
    final: bool
    """For the user, false for text that the next transcript replaces; for the agent, always
    true."""
    language: str | None = None
    """For the user, the language of most of the words, as in BCP 47; None if the recogniser does
    not tell it.  For the agent, always None."""
    utterance: Utterance | None = None
    turn: int | None = None


class Spoken(Wire):
    """Words that the caller has now heard, to append to the earlier ones."""

    type: Literal["spoken"] = "spoken"
    utterance: Utterance
    text: str


class Cut(Wire):
    """An utterance was cut; ``rest`` will never be heard."""

    type: Literal["cut"] = "cut"
    utterance: Utterance
    heard: str
    rest: str
    at_ms: Milliseconds
    """How much of the utterance's audio was heard."""


class State(Wire):
    """The state of the call has changed."""

    type: Literal["state"] = "state"
    state: CallState
    number: int
    """Counts the states of the call; the higher one is newer."""


class OtherEvent(Wire):
    """Any other event that reaches the caller, under its alias."""

    type: Literal["event"] = "event"
    name: str
    data: JsonObject


class ErrorMessage(Wire):
    """Something was refused or failed; the call continues unless ``ended`` follows."""

    type: Literal["error"] = "error"
    code: ErrorCode
    message: str
    request: Request | None = None
    detail: str | None = None
    """The text of the exception and the line that raised it; absent unless the client may see
    words."""


class Pong(Wire):
    """Answers a ping."""

    type: Literal["pong"] = "pong"
    t: float


ServerMessage = (
    AgentFrame
    | Hello
    | Clear
    | Hold
    | UtteranceEnd
    | Transcript
    | Spoken
    | Cut
    | State
    | OtherEvent
    | ErrorMessage
    | Pong
    | Ended
    | VerbReceipt
    | VerbSettled
    | Description
    | SnapshotMessage
    | Watching
    | Seen
    | Resumed
)


# --- the codec ----------------------------------------------------------------------------------


def encode(message: ClientMessage | ServerMessage) -> str | bytes:
    """Return a message as it goes over the wire: bytes for audio, JSON text for the others."""
    match message:
        case AgentFrame(utterance, pcm):
            return _HEADER.pack(utterance) + pcm
        case CallerAudio(pcm):
            return pcm
    return message.model_dump_json(exclude_none=True)


def decode_client(data: str | bytes, *, max_bytes: int = 65_536) -> ClientMessage:
    """Parse a message of a client.

    Args:
        data: A WebSocket message, text or binary.
        max_bytes: Longest message that is accepted, in bytes.

    Raises:
        ProtocolViolationError: It is no message of the protocol.  Nothing else is raised, whatever
            the bytes are.
    """
    if isinstance(data, str):
        # A character of UTF-8 has at most 4 bytes; encoding again for an exact count is not worth
        # its time.
        if len(data) > max_bytes:
            raise ProtocolViolationError("too_large", f"a message has at most {max_bytes} bytes")
        return _parse(data, _CLIENT_MODELS)  # type: ignore[return-value]  # by the table
    if len(data) > max_bytes:
        raise ProtocolViolationError("too_large", f"a message has at most {max_bytes} bytes")
    if not BYTES_PER_INPUT_MS <= len(data) <= MAX_INPUT_BYTES or len(data) % 2:
        raise ProtocolViolationError(
            "bad_audio",
            f"a frame of audio has an even number of bytes from {BYTES_PER_INPUT_MS} to "
            f"{MAX_INPUT_BYTES} (PCM16 mono {INPUT_RATE_HZ} Hz, 1 to 100 ms), not {len(data)}",
        )
    return CallerAudio(data)


def decode_server(data: str | bytes) -> ServerMessage:
    """Parse a message of a server.

    Args:
        data: A WebSocket message, text or binary.

    Raises:
        ProtocolViolationError: It is no message of the protocol.  Nothing else is raised, whatever
            the bytes are.
    """
    if isinstance(data, str):
        return _parse(data, _SERVER_MODELS)  # type: ignore[return-value]  # by the table
    if len(data) < _HEADER.size or len(data) % 2:
        raise ProtocolViolationError(
            "bad_audio", f"4 bytes and then PCM16 were expected, not {len(data)} bytes"
        )
    return AgentFrame(_HEADER.unpack_from(data)[0], data[_HEADER.size :])


def _by_type(*models: type[Wire]) -> dict[str, type[Wire]]:
    return {tag: m for m in models for tag in get_args(m.model_fields["type"].annotation)}


_CLIENT_MODELS = _by_type(
    PlaybackReport,
    TextInput,
    KeyPress,
    CustomInput,
    Mute,
    Talk,
    Stop,
    HangUp,
    Ping,
    UseVerb,
    AnswerPermission,
    AnswerQuestion,
    DescribeVerb,
    AskSnapshot,
    Watch,
    Resume,
)
_SERVER_MODELS = _by_type(
    Hello,
    Clear,
    Hold,
    UtteranceEnd,
    Transcript,
    Spoken,
    Cut,
    State,
    OtherEvent,
    ErrorMessage,
    Pong,
    Ended,
    VerbReceipt,
    VerbSettled,
    Description,
    SnapshotMessage,
    Watching,
    Seen,
    Resumed,
)


def _parse(text: str, models: Mapping[str, type[Wire]]) -> Wire:
    try:
        fields = from_json(text, allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        raise ProtocolViolationError("bad_json", "the text is not JSON") from error
    if not isinstance(fields, dict):
        raise ProtocolViolationError("bad_message", "a message is a JSON object")
    request = _request_of(fields)
    tag = fields.get("type")
    model = models.get(tag) if isinstance(tag, str) else None
    if model is None:
        shown = tag[:40] if isinstance(tag, str) else tag if tag is None else type(tag).__name__
        raise ProtocolViolationError(
            "unknown_type", f"type {shown!r} is none of {', '.join(models)}", request
        )
    try:
        return model.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "message"
        raise ProtocolViolationError(
            "bad_message", f"{tag}: {where}: {first['msg']}", request
        ) from error


def _request_of(fields: Mapping[str, object]) -> int | str | None:
    request = fields.get("request")
    if isinstance(request, str):
        return request[:64]
    if isinstance(request, int) and not isinstance(request, bool) and abs(request) < 2**53:
        return request
    return None
