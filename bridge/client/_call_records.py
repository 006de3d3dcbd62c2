"""A caller's records of a call: messages, received audio, and what it said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from bargein.routes import BargeinError

from ..protocol import ServerMessage

M = TypeVar("M", bound=ServerMessage)


class CallOverError(BargeinError):
    """The call ended while you were waiting for something in it.

    Attributes:
        reason: Why it ended.
    """

    def __init__(self, reason: str, awaited: str) -> None:
        super().__init__(f"the call ended ({reason!r}) while waiting for {awaited}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ReceivedMessage(Generic[M]):
    """A message of the server, and when it arrived."""

    at_s: float
    """In seconds of trio's clock."""
    number: int
    """Its number in the call, from 0 for ``hello``; its index in ``NetworkCaller.received`` while
    that keeps all."""
    message: M


@dataclass(frozen=True, slots=True)
class ReceivedAudio:
    """A piece of the agent's audio, as received."""

    at_s: float
    """In seconds of trio's clock."""
    utterance: int
    length: int
    """In samples."""


@dataclass(slots=True)
class SentSpeech:
    """What the caller said without a pause."""

    at_s: float
    """When the first frame was sent."""
    pcm: bytearray
    """PCM16 little-endian mono 16 kHz."""
