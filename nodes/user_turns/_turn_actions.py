"""What turn taking decides to do: hold the agent's speech, release it, publish an event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bargein.routes import Event

Values = Mapping[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class Hold:
    """The agent's speech is to stand still."""


@dataclass(frozen=True, slots=True)
class Release:
    """The agent's speech is to go on."""


@dataclass(frozen=True, slots=True)
class Publish:
    """An event is to be published."""

    event: Event
    words: str = ""
    """For the log line of a decision: what was heard.  Never part of the event."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A strategy raised, and the default one was asked instead."""

    error: Exception


Act = Hold | Release | Publish | Failed
