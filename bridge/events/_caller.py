"""The events of the caller: what they say, type and press."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from pydantic import Field

from bargein.routes import Event, register

from ..validation.foreign_data import ForeignText
from ._words import WordTiming

Button = Literal["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "*", "#", "A", "B", "C", "D"]
"""A key of a telephone keypad (ITU-T Q.23)."""


class UserStartedSpeaking(Event):
    """The caller started to speak (voice activity, before any word is known)."""

    type: Literal["user.started_speaking"] = "user.started_speaking"


class UserStoppedSpeaking(Event):
    """The caller's turn ended, and its words are transcribed.

    A sound without recognised words is not a turn; it leads to ``TranscriptionFailed``.
    """

    type: Literal["user.stopped_speaking"] = "user.stopped_speaking"


class UserTranscriptionReceived(Event):
    """What the caller said, as text."""

    type: Literal["user.transcription"] = "user.transcription"
    content: ForeignText
    """The words; a final transcript always has some."""
    final: bool = True
    """False for an interim transcript, which a later one replaces."""
    confidence: float | None = Field(default=None, ge=0, le=1)
    """0 to 1; ``None`` if the recogniser reports none."""
    language: ForeignText = ""
    """The language of most of the words, as in BCP 47: "fr"; empty if the recogniser does not
    report it."""
    speaker: ForeignText = ""
    """The recogniser's name for who said most of the words; empty if it does not report one."""
    words: tuple[WordTiming, ...] = ()
    """When each word was said, in seconds from the first sample of the call that the recogniser
    heard; empty unless all of them are known, and for an interim transcript."""


@register
@dataclass(frozen=True, slots=True)
class UserAudio:
    """A frame of audio from the caller's microphone."""

    type: ClassVar[str] = "user.audio"
    pcm: bytes
    """PCM16 little-endian mono; 20 ms at 16 kHz = 640 bytes."""
    sample_rate_hz: int = 16_000


class DTMFInput(Event):
    """The caller pressed a key."""

    type: Literal["user.dtmf"] = "user.dtmf"
    button: Button


class TalkKeyChanged(Event):
    """The caller pressed or released the talk key.

    While it is down, no silence ends the caller's turn.  Its release ends the turn as soon as the
    words are known, even without an earlier press, so that an app can end a turn.
    """

    type: Literal["user.talk_key"] = "user.talk_key"
    down: bool


class CustomReceived(Event):
    """The caller's client sent custom data."""

    type: Literal["user.custom"] = "user.custom"
    metadata: dict[str, Any]
