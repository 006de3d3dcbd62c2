"""The messages of ConversationRelay, by which a carrier hears and speaks: no I/O, and no state.

Twilio and Telnyx speak it; what differs is in a ``RelayDialect``.

Rule 1. ``decode()`` never raises: what is wrong is ``Ignored``, with the reason.
Rule 2. Each message of the carrier is one event.

Sources: Twilio's page on ConversationRelay's WebSocket messages, and Telnyx's of the same name.
``info`` is in neither; its forms are those of recorded calls and of four clients, which agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast, final

from pydantic import Field
from pydantic_core import to_json

from bargein.routes import Event

from ...events import Button
from ...validation.foreign_data import clean_text, json_object
from ...websocket import Data
from ..text._text_events import (
    BUTTONS,
    MAX_TEXT_CHARS,
    FarError,
    Ignored,
    PlayedWords,
    PressedKey,
    Prompt,
    SpeechChange,
)

MAX_PARAMETERS = 50
MAX_PARAMETER_CHARS = 1_000


@dataclass(frozen=True, slots=True)
class RelayDialect:
    """What differs between the carriers that speak the protocol."""

    carrier: str
    """The name of the carrier."""
    call_ids: tuple[str, ...] = ("callSid",)
    """The fields of ``setup`` that may name the call; the first that is there counts."""
    can_preempt: bool = True
    """Whether a text may be marked so that the next one stops it; otherwise nothing but the
    caller's voice stops what the carrier was given."""
    marks_interruptible: bool = True
    """Whether a text says if the caller's voice stops it; otherwise that is one for a whole call.
    What no route cuts is then spoken again from the first word that was not heard."""


class PlayMedia(Event):
    """Lets the carrier play a recording behind what is being said, where it can; see its page."""

    type: Literal["agent.play_media"] = "agent.play_media"
    source: str
    """The address of the recording."""
    times: int = Field(default=1, ge=1, le=1000)


# --- what a carrier says ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opened:
    """The first message: whose call it is."""

    call: str
    session: str
    account: str
    caller: str = field(repr=False)
    called: str = field(repr=False)
    parameters: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Stopped:
    """The caller interrupted the carrier's voice, which has dropped all that it had."""

    heard: str = field(repr=False)
    """The end of what was heard."""


RelayEvent: TypeAlias = (
    Opened | Prompt | PressedKey | Stopped | PlayedWords | SpeechChange | FarError | Ignored
)

_SPEAKERS: Mapping[str, Literal["agent", "caller"]] = {
    "agentSpeaking": "agent",
    "clientSpeaking": "caller",
}


@final
class RelayCodec:
    """Reads and writes the messages of one carrier."""

    __slots__ = ("_dialect",)

    def __init__(self, dialect: RelayDialect) -> None:
        self._dialect = dialect

    def decode(self, data: Data) -> RelayEvent:
        """Return what a message of the carrier means; never raises."""
        message = json_object(data)
        if isinstance(message, str):
            return Ignored(message)
        match message.get("type"):
            case "setup":
                return self._opened(message)
            case "prompt":
                said = _text(message, "voicePrompt")
                if said is None:
                    return Ignored("prompt without voicePrompt")
                last = message.get("last", True)
                return Prompt(said, last is not False, _text(message, "lang") or "")
            case "dtmf":
                digit = message.get("digit")
                if not isinstance(digit, str) or digit not in BUTTONS:
                    return Ignored("dtmf without a key")
                return PressedKey(cast("Button", digit))
            case "interrupt":
                heard = _text(message, "utteranceUntilInterrupt")
                if heard is None:
                    return Ignored("interrupt without utteranceUntilInterrupt")
                return Stopped(heard)
            case "info":
                return _info(message)
            case "error":
                return FarError(_text(message, "description") or "")
            case str():
                return Ignored("unknown type")
        return Ignored("no type")

    def _opened(self, message: dict[str, Any]) -> RelayEvent:
        ids = (_text(message, name) for name in self._dialect.call_ids)
        call = next((one for one in ids if one), None)
        if call is None:
            return Ignored(f"setup without {self._dialect.call_ids[0]}")
        given = message.get("customParameters")
        parameters = {
            name: value
            for name, value in (given.items() if isinstance(given, dict) else ())
            if isinstance(value, str) and len(value) <= MAX_PARAMETER_CHARS
        }
        if len(parameters) > MAX_PARAMETERS:
            return Ignored("setup with too many parameters")
        session, account, caller, called = (
            _text(message, name) or "" for name in ("sessionId", "accountSid", "from", "to")
        )
        return Opened(call, session, account, caller, called, parameters)

    # --- what is said to the carrier ------------------------------------------------------------

    def text(self, token: str, *, last: bool, interruptible: bool) -> str:
        """Return text for the carrier's voice.

        Args:
            token: The next piece.
            last: Whether no more of it comes: then the carrier does not wait for its clause's end.
            interruptible: Whether the caller's voice stops it.
        """
        message: dict[str, Any] = {"type": "text", "token": token, "last": last}
        if self._dialect.marks_interruptible:
            message["interruptible"] = interruptible
        if self._dialect.can_preempt:
            message["preemptible"] = True
        return _json(message)

    def clear(self) -> str | None:
        """Return what stops the carrier's voice; ``None`` if nothing does.

        That is a text without words, which stops those before it that may be stopped so.
        """
        if not self._dialect.can_preempt:
            return None
        return _json({"type": "text", "token": " ", "last": True, "preemptible": True})

    @staticmethod
    def play(source: str, times: int) -> str:
        """Return what lets the carrier play a recording."""
        return _json({"type": "play", "source": source, "loop": times})

    @staticmethod
    def music(source: str) -> str:
        """Return what plays a recording over and over, until the next text."""
        message = {"type": "play", "source": source, "loop": 1000, "preemptible": True}
        return _json({**message, "interruptible": False})

    @staticmethod
    def keys(digits: str) -> str:
        """Return what lets the carrier press keys."""
        return _json({"type": "sendDigits", "digits": digits})

    @staticmethod
    def language(spoken: str, heard: str) -> str:
        """Return what changes the carrier's languages."""
        message = {"type": "language"}
        if spoken:
            message["ttsLanguage"] = spoken
        if heard:
            message["transcriptionLanguage"] = heard
        return _json(message)

    @staticmethod
    def end(handoff: Mapping[str, str] | None = None) -> str:
        """Return what ends the relay.

        Args:
            handoff: What the carrier gives the webhook that it asks what comes next.
        """
        message = {"type": "end"}
        if handoff is not None:
            message["handoffData"] = _json(handoff)
        return _json(message)


def _info(message: dict[str, Any]) -> RelayEvent:
    name, value = message.get("name"), message.get("value")
    if name == "tokensPlayed":
        text = _text(message, "value")
        return Ignored("tokensPlayed without a value") if text is None else PlayedWords(text)
    who = _SPEAKERS.get(name) if isinstance(name, str) else None
    if who is not None and value in ("on", "off"):
        return SpeechChange(who, value == "on")
    return Ignored("unknown info")


def _text(message: dict[str, Any], name: str) -> str | None:
    value = message.get(name)
    return clean_text(value)[:MAX_TEXT_CHARS] if isinstance(value, str) else None


def _json(message: Mapping[str, Any]) -> str:
    return to_json(message).decode()
