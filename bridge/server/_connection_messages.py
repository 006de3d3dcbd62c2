"""The messages of the native protocol that begin a connection, and end a call.

A connection begins with ``hello``, or goes on with a call whose line dropped: a client that opens
``/ws?resume=1`` sends ``resume`` and nothing else, and goes on when ``resumed`` has come.

Both sides count the JSON messages that they get of the other, over all connections of a call:
``hello``, ``resume`` and ``resumed`` do not count, everything else does, whatever it says.  Each
tells its count when the call goes on, and the other sends again what was lost.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from .._verbs import HandleOffer
from ..events import CallState
from ._handle_messages import SnapshotMessage
from ._message_base import Milliseconds, Utterance, Wire
from ._watch_messages import WatchLevel

PROTOCOL_VERSION = 1
INPUT_RATE_HZ = 16_000
OUTPUT_RATE_HZ = 24_000

Count = Annotated[int, Field(ge=0, lt=2**53)]

# --- client to server ---------------------------------------------------------------------------


class Resume(Wire):
    """Goes on with a call whose connection was lost; the first message of its connection."""

    type: Literal["resume"] = "resume"
    token: Annotated[str, Field(max_length=256)]
    """What the last ``hello`` or ``resumed`` gave."""
    received: Count
    """JSON messages that came, of all connections of the call."""
    utterance: Utterance | None = None
    """The last utterance of which audio came; absent before any did."""
    audio_bytes: Count = 0
    """How much audio of that utterance came, in bytes of PCM."""
    playing: Utterance | None = None
    """The utterance that is held in the player; absent if there is none."""
    played_ms: Milliseconds = 0.0
    """How much of that utterance was played."""

    @model_validator(mode="after")
    def _check_samples(self) -> Resume:
        if self.audio_bytes % 2:
            raise ValueError("audio_bytes is a whole number of samples")
        return self


# --- server to client ---------------------------------------------------------------------------


class Said(Wire):
    """What one side has said, in a conversation that goes on."""

    role: Literal["user", "agent"]
    text: str
    """All of it; of an agent what was generated so far."""
    heard: str | None = None
    """What of an agent's text the caller has heard; the rest is queued, or was cut."""
    turn: int | None = None
    """The agent's turn."""
    cut: bool = False
    """Whether it was cut: then what was not heard never will be."""


class Greeting(Wire):
    """What ``hello`` and ``resumed`` both tell."""

    protocol: int = PROTOCOL_VERSION
    call: str
    agent: str
    audio: bool
    input_rate_hz: int = INPUT_RATE_HZ
    output_rate_hz: int = OUTPUT_RATE_HZ
    watch: WatchLevel = "off"
    """What this server lets the client see of its call; see the message ``watch``."""
    conversation: str | None = None
    """Names the conversation, where callers may name one."""
    resume: str | None = None
    """The token that goes on with this call when its line drops; each connection has its own.
    Absent where a lost line ends the call."""
    resume_s: float = 0.0
    """For how long the call waits for its client to come back."""
    handle: HandleOffer = "auto"
    """Which verbs a client offers while the agent merely thinks or speaks; see ``App``."""
    transcript: Annotated[tuple[Said, ...], Field(strict=False)] = ()
    """What was said so far, the last of it if it is long."""


class Hello(Greeting):
    """The first message of a call."""

    type: Literal["hello"] = "hello"


class Resumed(Greeting):
    """The call continues over this connection; what the client missed follows."""

    type: Literal["resumed"] = "resumed"
    received: Count
    """JSON messages of the client that came, of all connections of the call."""
    state: CallState
    number: int
    """The number of the last ``state`` message."""
    snapshot: SnapshotMessage
    """What the call is doing."""


class Ended(Wire):
    """The last message of a call."""

    type: Literal["ended"] = "ended"
    reason: str
