"""What far sides that hear and speak tell, whatever their messages look like."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from bargein.routes import Event

from ...events import Button

BUTTONS = frozenset(get_args(Button))

MAX_TEXT_CHARS = 8_000
"""How many characters of a text of the far side are taken: eight minutes of speech."""


class SwitchLanguage(Event):
    """Lets the far side speak and hear another language from now on."""

    type: Literal["agent.switch_language"] = "agent.switch_language"
    spoken: str = ""
    """The tag of the language of its voice, such as "es-ES"; empty for no change."""
    heard: str = ""
    """The tag of the language of its ears; empty for no change."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the caller said, or has said so far."""

    text: str = field(repr=False)
    final: bool
    language: str = ""


@dataclass(frozen=True, slots=True)
class PressedKey:
    """The caller pressed a key."""

    button: Button


@dataclass(frozen=True, slots=True)
class PlayedWords:
    """The far side's voice has spoken the next words, or sent keys."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SpeechChange:
    """A voice is heard from now on, or no longer."""

    who: Literal["agent", "caller"]
    on: bool


@dataclass(frozen=True, slots=True)
class FarError:
    """The far side did not understand a message, or failed."""

    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Ignored:
    """A message that means nothing here."""

    why: str
