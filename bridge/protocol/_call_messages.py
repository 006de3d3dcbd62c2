"""The native protocol, version 1: the messages of a call itself, and their encoding.

Other modules have the messages of the connection, of the handle and of watching;
``_message_validation`` reads them all.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, field_validator
from pydantic_core import to_json

from ..events import Button, CallState
from ..validation.foreign_data import showable
from ..validation.texts import is_blank
from ._connection_messages import Ended, Hello, Resume, Resumed
from ._control_messages import (
    Description,
    HandleMessage,
    SnapshotMessage,
    VerbReceipt,
    VerbSettled,
)
from ._message_base import (
    ErrorCode,
    JsonObject,
    Milliseconds,
    NativeMessage,
    Request,
    UtteranceNumber,
)
from ._watch_messages import Seen, Watching, WatchMessage

AGENT_AUDIO_HEADER = struct.Struct("<I")
"""Before the samples of an `AgentFrame`: the number of its utterance."""


# --- client to server ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallerAudio:
    """Microphone audio: 1 to 100 ms of PCM16 little-endian mono at 16 kHz."""

    pcm: bytes


class PlaybackReport(NativeMessage):
    """How far the client has played an utterance."""

    type: Literal[
        "playback.start",
        "playback.position",
        "playback.done",
        "playback.underrun",
        "playback.flushed",
    ]
    utterance: UtteranceNumber
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


class TextInput(NativeMessage):
    """What the caller typed."""

    type: Literal["text"] = "text"
    text: Annotated[str, Field(min_length=1, max_length=10_000)]

    @field_validator("text")
    @classmethod
    def _says_something(cls, text: str) -> str:
        if is_blank(text):
            raise ValueError("it says nothing")
        return text


class KeyPress(NativeMessage):
    """The caller pressed a key of the telephone keypad."""

    type: Literal["dtmf"] = "dtmf"
    button: Button


class CustomInput(NativeMessage):
    """Data that only your client and your agent understand."""

    type: Literal["custom"] = "custom"
    metadata: JsonObject

    @field_validator("metadata")
    @classmethod
    def _is_json(cls, metadata: JsonObject) -> JsonObject:
        json.dumps(metadata, allow_nan=False)  # 1e999 is JSON, and infinite in Python
        return metadata


class Mute(NativeMessage):
    """Turns the microphone off or on; while it is off, the agent hears silence."""

    type: Literal["mute"] = "mute"
    on: bool


class Talk(NativeMessage):
    """The push-to-talk key was pressed or released."""

    type: Literal["talk"] = "talk"
    down: bool


class PlayerSound(NativeMessage):
    """The client's loudspeaker stands still, or runs again.

    A browser suspends the sound of a page, for a telephone call or another headset.  Nothing is
    heard then, so the agent's voice is held until it runs again.
    """

    type: Literal["sound"] = "sound"
    on: bool
    """Whether it runs; a client that says nothing has a loudspeaker that runs."""


class Stop(NativeMessage):
    """The caller pressed Stop."""

    type: Literal["stop"] = "stop"


class HangUp(NativeMessage):
    """Ends the call."""

    type: Literal["hangup"] = "hangup"


class Ping(NativeMessage):
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
    | PlayerSound
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


class Clear(NativeMessage):
    """Orders the player to drop all audio up to and including this utterance, now and later."""

    type: Literal["clear"] = "clear"
    utterance: UtteranceNumber
    request: Request
    reason: str


class Hold(NativeMessage):
    """Orders the player to hold at its next sample, or to resume from there."""

    type: Literal["hold"] = "hold"
    on: bool


class UtteranceEnd(NativeMessage):
    """All audio of an utterance has been sent."""

    type: Literal["utterance.end"] = "utterance.end"
    utterance: UtteranceNumber


class Transcript(NativeMessage):
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
    utterance: UtteranceNumber | None = None
    answer: int | None = None


class Spoken(NativeMessage):
    """Words that the caller has now heard, to append to the earlier ones."""

    type: Literal["spoken"] = "spoken"
    utterance: UtteranceNumber
    text: str


class Cut(NativeMessage):
    """An utterance was cut; ``rest`` will never be heard."""

    type: Literal["cut"] = "cut"
    utterance: UtteranceNumber
    heard: str
    rest: str
    at_ms: Milliseconds
    """How much of the utterance's audio was heard."""


class State(NativeMessage):
    """The state of the call has changed."""

    type: Literal["state"] = "state"
    state: CallState
    number: int
    """Counts the states of the call; the higher one is newer."""


class OtherEvent(NativeMessage):
    """Any other event that reaches the caller, under its alias."""

    type: Literal["event"] = "event"
    name: str
    data: JsonObject


class ErrorMessage(NativeMessage):
    """Something was refused or failed; the call continues unless ``ended`` follows."""

    type: Literal["error"] = "error"
    code: ErrorCode
    message: str
    request: Request | None = None
    detail: str | None = None
    """The text of the exception and the line that raised it; absent unless the client may see
    words."""


class Pong(NativeMessage):
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


# --- both ways ----------------------------------------------------------------------------------


def encode(message: ClientMessage | ServerMessage) -> str | bytes:
    """Return a message as it goes over the wire: bytes for audio, JSON text for the others.

    Text that UTF-8 cannot hold is replaced, and what is nested too deep left out.

    Raises:
        PydanticSerializationError: It holds an object that JSON lacks.
    """
    match message:
        case AgentFrame(utterance, pcm):
            return AGENT_AUDIO_HEADER.pack(utterance) + pcm
        case CallerAudio(pcm):
            return pcm
    try:
        return message.model_dump_json(exclude_none=True)
    except (ValueError, RecursionError):  # text or nesting that JSON cannot hold
        fields = showable(message, names_classes=False).items()
        return to_json({name: one for name, one in fields if one is not None}).decode()
