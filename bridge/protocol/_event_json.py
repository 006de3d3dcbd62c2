"""Events as short JSON, with or without the words in them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from itertools import islice
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import to_json

from .. import events as e
from ..validation.foreign_data import clean_text, showable

MAX_TEXT = 1000
"""How many characters of one text are shown: a long paragraph.  A tool may return a thousand times
that."""
MAX_ITEMS = 40
MAX_DEPTH = 5
MAX_BITS = 256
MAX_LEFT = 4000
"""How many characters of one event are shown in total."""
MAX_ARGUMENTS = 4096
"""How many bytes of a tool's arguments are shown to somebody who decides about it: three pages."""

_WORDLESS: dict[type, frozenset[str]] = {
    e.AgentError: frozenset({"message", "route", "stage"}),
    e.AgentSpeechHeld: frozenset({"reason"}),
    e.AgentSpeechReleased: frozenset({"reason"}),
    e.AgentHandoff: frozenset({"target"}),
    e.CallEnded: frozenset({"reason"}),
    e.CallStarted: frozenset({"call_id"}),
    e.CapWarning: frozenset({"which"}),
    e.EmergencyStop: frozenset({"reason"}),
    e.JobAnnounced: frozenset({"id", "name"}),
    e.JobFinished: frozenset({"id", "name"}),
    e.ListeningFailed: frozenset({"error"}),
    e.LogMetric: frozenset({"name", "unit"}),
    e.PermissionAnswered: frozenset({"id", "name"}),
    e.PermissionRequested: frozenset({"id", "name"}),
    e.QuestionAsked: frozenset({"id", "call", "name"}),
    e.QuestionClosed: frozenset({"id", "name"}),
    e.ToolCall: frozenset({"id", "name"}),
    e.ToolOutput: frozenset({"id", "name"}),
    e.ToolProgress: frozenset({"id", "name"}),
    e.ToolResult: frozenset({"id", "name"}),
    e.TranscriptionFailed: frozenset({"error"}),
    e.TurnDecided: frozenset({"decision", "rule", "values"}),
    e.VoiceWords: frozenset({"error"}),
    e.AnswerEnded: frozenset({"agent", "capped", "finish_reason"}),
}
"""Text fields that say what an event is about, and never what anybody said.  Of all other fields,
and of users' events, only numbers and fixed words are shown."""

_OF_PROVIDERS: dict[type, frozenset[str]] = {e.ToolCall: frozenset({"provider", "extra"})}
"""Fields that only the provider reads which sent them."""

_TOLD_BY_COMING = ("type", "for_operator")
"""Fields that are left out: the name of an event is sent separately, and what is for operators is
sent to nobody."""

_KEYS = get_args(e.Button)

_open_fields: dict[type, frozenset[str]] = {}


def brief(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """Return a tool's arguments as at most `MAX_ARGUMENTS` bytes of JSON, and the whole's size.

    Long texts and lists are shortened, and say how long they are.
    """
    whole = showable(arguments)
    size = len(to_json(whole))
    shown, room = whole, MAX_LEFT
    while len(to_json(shown)) > MAX_ARGUMENTS:
        shown, room = _short(whole, [room]), room // 2
    return shown, size


def compact(event: Any) -> dict[str, Any]:
    """Return the fields of an event as short JSON; never raises.

    Args:
        event: An event of any class; bytes become their count, and values that JSON lacks their
            class.
    """
    left = [MAX_LEFT]
    return {name: _short(getattr(event, name, None), left) for name in _fields(type(event))}


def without_words(event: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the fields of an event that cannot contain words, and the names of the others.

    Numbers, bools and words of a fixed set are safe in any event.
    """
    cls = type(event)
    safe = _open_fields.get(cls)
    if safe is None:
        safe = _open_fields[cls] = _WORDLESS.get(cls, frozenset()) | _fixed_words(cls)
    shown, hidden = {}, []
    for name, value in compact(event).items():
        if name in safe or value is None or isinstance(value, int | float):
            shown[name] = value
        elif value:
            hidden.append(name)
    return shown, tuple(hidden)


def _fields(cls: type) -> tuple[str, ...]:
    if issubclass(cls, BaseModel):
        hidden = _OF_PROVIDERS.get(cls, frozenset()).union(_TOLD_BY_COMING)
        return tuple(name for name in cls.model_fields if name not in hidden)
    if is_dataclass(cls):
        return tuple(field.name for field in fields(cls))
    return ()


def _fixed_words(cls: type) -> frozenset[str]:
    models = cls.model_fields if issubclass(cls, BaseModel) else {}
    # Telephone keys are a fixed set too, but they spell card numbers.
    return frozenset(
        name
        for name, field in models.items()
        if get_origin(field.annotation) is Literal and get_args(field.annotation) != _KEYS
    )


def _short(value: Any, left: list[int], depth: int = 0) -> Any:
    match value:
        case int() if value.bit_length() > MAX_BITS:
            return f"<a number of {value.bit_length()} bits>"
        case None | bool() | int():
            left[0] -= 5
            return value
        case float():
            left[0] -= 8
            return value if math.isfinite(value) else str(value)
        case str():
            return _short_text(value, left)
        case bytes() | bytearray() | memoryview():
            return f"<{len(value)} bytes>"
    if depth == MAX_DEPTH or left[0] <= 0:
        return "…"
    left[0] -= 2
    if isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
        value = {name: getattr(value, name, None) for name in _fields(type(value))}
    if isinstance(value, Mapping):
        return _short_mapping(value, left, depth)
    if isinstance(value, list | tuple | set | frozenset):
        items = [_short(item, left, depth + 1) for item in islice(value, MAX_ITEMS)]
        return [*items, f"… {len(value)} in all"] if len(value) > MAX_ITEMS else items
    return f"<{type(value).__name__}>"


def _short_text(text: str, left: list[int]) -> str:
    room = max(0, min(MAX_TEXT, left[0]))
    left[0] -= min(len(text), room) + 2
    shown = text if len(text) <= room else f"{text[:room]}… {len(text)} characters in all"
    return clean_text(shown)


def _short_mapping(value: Mapping[Any, Any], left: list[int], depth: int) -> dict[str, Any]:
    short = {
        _short_text(str(key), left): _short(item, left, depth + 1)
        for key, item in islice(value.items(), MAX_ITEMS)
    }
    if len(value) > MAX_ITEMS:
        short["…"] = f"{len(value)} in all"
    return short
