"""The actions of turn taking: hold or release the agent's speech, publish an event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bargein.routes import Event

Values = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class HoldSpeech:
    """Hold the agent's speech."""


@dataclass(frozen=True, slots=True)
class ReleaseSpeech:
    """Release the agent's speech."""


@dataclass(frozen=True, slots=True)
class PublishEvent:
    """Publish an event."""

    event: Event
    words: str = ""
    """For the log line of a decision: what was heard.  Never part of the event."""


@dataclass(frozen=True, slots=True)
class ReportFailure:
    """Report that a strategy raised, and the default one was used instead."""

    error: Exception


Act = HoldSpeech | ReleaseSpeech | PublishEvent | ReportFailure
