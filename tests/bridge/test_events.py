"""The events of a voice call."""

from __future__ import annotations

import dataclasses
import inspect

import pydantic
import pytest

from bargein import events
from bargein.events import (
    AgentAudio,
    AnsweredBy,
    DTMFInput,
    QuestionClosed,
    TranscriptionFailed,
    UserAudio,
    UserTranscriptionReceived,
    WordTiming,
)
from bargein.routes import Event, alias_of, class_of

MODELS = [
    cls
    for _, cls in inspect.getmembers(events, inspect.isclass)
    if issubclass(cls, Event) and cls is not Event
]
AUDIO = [UserAudio, AgentAudio]

SAMPLES: dict[str, object] = {
    "action": "transfer",
    "content": "words",
    "button": "5",
    "down": True,
    "metadata": {"a": 1},
    "utterance": 1,
    "heard": "a",
    "unheard": "b",
    "at_ms": 1.5,
    "basis": "clock",
    "outcome": "completed",
    "target": "desk",
    "message": "KeyError in .map()",
    "error": "RuntimeError",
    "name": "look",
    "call_id": "c",
    "target_phone_number": "+15550100",
    "state": "idle",
    "number": 1,
    "value": 3,
    "answer": 1,
    "agent": "agent",
    "verb": "cancel",
    "id": "call_1",
    "verdict": "allowed",
    "text": "a line",
    "which": "steps",
    "used": 8,
    "limit": 10,
    "elapsed_s": 10.5,
    "phase": "tool",
    "reason": "barge_in",
    "held_s": 0.25,
    "kind": "acknowledgement",
    "probability": 0.9,
    "complete": 0.5,
    "about": "barge_in",
    "decision": "interruption",
    "rule": "min_duration_s",
    "away_s": 8.0,
    "idle_s": 4.0,
    "count": 1,
    "call": "call_1",
    "stage": "tool",
    "silent_s": 2.2,
    "place": "agent.py:7",
    "function": "answer",
    "blocked_s": 0.3,
    "who": "menu",
    "after_ms": 900.0,
    "on": True,
    "paused_s": 4.0,
    "frequency_hz": 440.0,
    "lasted_s": 0.5,
    "step": "dialled",
}


OTHER_SAMPLES: dict[type, dict[str, object]] = {
    TranscriptionFailed: {"reason": "timed_out"},
    AnsweredBy: {"basis": "words"},
    QuestionClosed: {"outcome": "answered"},
}


def made(cls: type[Event]) -> Event:
    required = [name for name, field in cls.model_fields.items() if field.is_required()]
    return cls(**{name: SAMPLES[name] for name in required} | OTHER_SAMPLES.get(cls, {}))


def test_there_are_the_events_of_a_call():
    """Nobody loses an event by accident."""
    assert {cls.__name__ for cls in MODELS} >= {
        "UserStartedSpeaking", "UserStoppedSpeaking", "UserTranscriptionReceived", "AgentResponse",
        "AgentStartedSpeaking", "AgentStoppedSpeaking", "AgentSpeechSent",
        "AgentGenerationComplete", "AgentHandoff", "AgentError", "ToolCall", "ToolResult",
        "DTMFInput", "DTMFOutput", "EndCall", "TransferCall", "CallStarted", "CallEnded",
        "CustomReceived", "LogMetric", "EmergencyStop", "StateChanged", "TranscriptionFailed",
        "ListeningFailed", "ListeningResumed",
    }  # fmt: skip


@pytest.mark.parametrize("cls", MODELS, ids=lambda cls: cls.__name__)
def test_an_event_is_frozen_and_strict_and_survives_json(cls):
    """It does not change, knows no unknown field, and comes back from JSON as it was."""
    event = made(cls)
    with pytest.raises(pydantic.ValidationError):
        event.type = "other"  # type: ignore[attr-defined]  # that it cannot be set is the point
    with pytest.raises(pydantic.ValidationError):
        cls(**event.model_dump(), unheard_of=1)
    assert cls.model_validate_json(event.model_dump_json()) == event


@pytest.mark.parametrize("cls", [*MODELS, *AUDIO], ids=lambda cls: cls.__name__)
def test_an_event_is_found_by_its_alias(cls):
    """Each has one alias, of two parts, and a docstring of one fact."""
    alias = alias_of(cls)
    assert class_of(alias) is cls
    assert alias.partition(".")[0] in ("user", "voice", "turn", "agent", "call", "line")
    assert cls.__doc__
    assert cls.__doc__.endswith(".") or ".\n" in cls.__doc__


def test_aliases_are_unique():
    """No two events share a tag."""
    aliases = [alias_of(cls) for cls in [*MODELS, *AUDIO]]
    assert len(aliases) == len(set(aliases))


@pytest.mark.parametrize("cls", [*AUDIO, WordTiming], ids=lambda cls: cls.__name__)
def test_audio_is_slotted_and_frozen(cls):
    """Frames are made fifty times a second: no dictionary, no validation, no change."""
    values = {"pcm": b"\0\0", "sample_rate_hz": 16_000, "text": "a", "start_s": 0.0, "end_s": 1.0}
    names = [field.name for field in dataclasses.fields(cls)]
    item = cls(**{name: values[name] for name in names if name in values})
    assert not hasattr(item, "__dict__")
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(item, names[0], None)


@pytest.mark.parametrize("button", ["", "10", "E", "a"])
def test_only_keys_of_a_telephone_are_keys(button):
    """Sixteen keys, and nothing else."""
    with pytest.raises(pydantic.ValidationError):
        DTMFInput(button=button)


@pytest.mark.parametrize("confidence", [-0.1, 1.1])
def test_a_confidence_is_a_share(confidence):
    """0 to 1, or None where the recogniser gives none."""
    with pytest.raises(pydantic.ValidationError):
        UserTranscriptionReceived(content="a", confidence=confidence)
    assert UserTranscriptionReceived(content="a").confidence is None
