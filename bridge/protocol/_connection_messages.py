"""The messages of the native protocol that begin a connection and end a call.

A new call begins with ``hello``.  To resume a call whose connection was lost, a client opens
``/ws?resume=`` and the call's id, or ``1`` if it does not know it, sends ``resume`` and nothing
else, and continues when it receives ``resumed``.

Each side counts the JSON messages it receives, over all connections of a call; every message counts
except ``hello``, ``resume`` and ``resumed``.  When a call resumes, both sides exchange their counts
and send again what was lost.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .._verbs import HandleOffer
from ..events import CallState
from ._control_messages import SnapshotMessage
from ._message_base import Milliseconds, NativeMessage, UtteranceNumber
from ._watch_messages import WatchLevel

PROTOCOL_VERSION = 1
INPUT_RATE_HZ = 16_000
OUTPUT_RATE_HZ = 24_000

Count = Annotated[int, Field(ge=0, lt=2**53)]

# --- client to server ---------------------------------------------------------------------------


class Resume(NativeMessage):
    """Resumes a call whose connection was lost; the first message of the new connection."""

    type: Literal["resume"] = "resume"
    token: Annotated[str, Field(max_length=256, repr=False)]
    """The token of the last ``hello`` or ``resumed``."""
    received: Count
    """How many JSON messages the client has received, over all connections of the call."""
    utterance: UtteranceNumber | None = None
    """The last utterance that the client received audio of; absent before the first."""
    audio_bytes: Count = 0
    """How much audio of that utterance it received, in bytes of PCM16."""
    playing: UtteranceNumber | None = None
    """The utterance that the client's player holds; absent if there is none."""
    played_ms: Milliseconds = 0.0
    """How much of that utterance has been played."""

    @model_validator(mode="after")
    def _check_samples(self) -> Resume:
        if self.audio_bytes % 2:
            raise ValueError("audio_bytes is a whole number of samples")
        return self


# --- server to client ---------------------------------------------------------------------------


class EarlierWords(NativeMessage):
    """What one side has said earlier in the conversation."""

    role: Literal["user", "agent"]
    text: str
    """The whole text; of an agent, the text generated so far."""
    heard: str | None = None
    """The part of an agent's text that the caller has heard; the rest is queued, or was cut."""
    answer: int | None = None
    """The agent's answer; absent for the user."""
    cut: bool = False
    """Whether it was cut, so that the rest will never be heard."""


class Greeting(NativeMessage):
    """The fields that ``hello`` and ``resumed`` share."""

    protocol: int = PROTOCOL_VERSION
    call: str
    agent: str
    audio: bool
    input_rate_hz: int = INPUT_RATE_HZ
    output_rate_hz: int = OUTPUT_RATE_HZ
    watch: WatchLevel = "off"
    """How much of its call the server shows the client; see the message ``watch``."""
    conversation: str | None = None
    """The name of the conversation; absent where callers may not name one."""
    resume: str | None = Field(default=None, repr=False)
    """The token that resumes this call if the connection is lost; each connection has its own.
    Absent if a lost connection ends the call."""
    resume_s: float = 0.0
    """How many seconds the call waits for its client to come back."""
    handle: HandleOffer = "auto"
    """When the client shows the verbs while the agent thinks or speaks; see ``App``."""
    transcript: Annotated[tuple[EarlierWords, ...], Field(strict=False)] = ()
    """The conversation so far; only its end if it is long."""


class Hello(Greeting):
    """The first message of a call."""

    type: Literal["hello"] = "hello"


class Resumed(Greeting):
    """The call continues on this connection; the messages that the client missed follow."""

    type: Literal["resumed"] = "resumed"
    received: Count
    """How many JSON messages the server has received, over all connections of the call."""
    state: CallState
    number: int
    """The number of the last ``state`` message."""
    snapshot: SnapshotMessage
    """The call at this moment."""
    fresh: bool = False
    """Whether another process goes on with the call: no earlier message is sent again, and the
    transcript and the snapshot replace what the client knows."""


class Ended(NativeMessage):
    """The last message of a call."""

    type: Literal["ended"] = "ended"
    reason: str
