"""The results of a rehearsal, as plain data and as text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ._decision_words import decision_in_words
from ._rehearsal_result import (
    IgnoredSound,
    LatencyParts,
    MeasuredAnswer,
    MeasuredCut,
    Rehearsal,
    TurnDecision,
)


def as_json(result: Rehearsal) -> dict[str, Any]:
    """Return the figures and checks of a rehearsal as plain data, without the history.

    Times are seconds of the recording.

    Args:
        result: The results.
    """
    return {
        "ok": result.ok,
        "ended": result.ended,
        "duration_s": _rounded(result.recording.duration_s),
        "problems": list(result.problems),
        "lines": [_line(answer) for answer in result.answers],
        "cuts": [_cut(cut) for cut in result.cuts],
        "ignored_sounds": [_ignored_sound(ignored) for ignored in result.ignored_sounds],
        "decisions": [_decision(each) for each in result.decisions],
        "held": [
            {"from_s": _rounded(each.from_s), "until_s": _rounded(each.until_s)}
            | {"reason": each.reason}
            for each in result.held
        ],
        "checks": [asdict(check) for check in result.checks],
    }


def parts_in_words(parts: LatencyParts) -> str:
    """Return the parts of a latency in one row, in order of time."""
    turn_model = f"turn model {parts.end_of_turn_s:.2f} beside it"
    named = [
        (parts.silence_s, "silence waited for"),
        (parts.transcription_s, f"transcription ({turn_model})"),
        (parts.first_text_s, "first text"),
        (parts.first_clause_s, "first clause"),
        (parts.first_piece_s, "voice"),
        (parts.playback_s, "line and player"),
    ]
    return ", ".join(f"{seconds:.2f} {name}" for seconds, name in named)


def _line(answer: MeasuredAnswer) -> dict[str, Any]:
    said, parts = answer.said, answer.parts
    return {
        "text": said.line.text,
        "from_s": _rounded(said.from_s),
        "until_s": _rounded(said.until_s),
        "first_sound_after_s": _rounded(answer.latency_s),
        "parts": parts and {name: _rounded(value) for name, value in asdict(parts).items()},
    }


def _cut(cut: MeasuredCut) -> dict[str, Any]:
    figures = ("silent_at_s", "latency_s", "played_s", "dropped_s", "late_s", "arrived_late_s")
    return {
        "line": cut.said.line.text,
        "utterance": cut.utterance,
        "is_reported": cut.is_reported,
        **{name: _rounded(getattr(cut, name)) for name in figures},
        "heard": cut.heard,
        "unheard": cut.unheard,
        "transcript": cut.transcript,
    }


def _ignored_sound(ignored: IgnoredSound) -> dict[str, Any]:
    said = ignored.said
    figures = ("gap_s", "gap_from_s", "dead_air_s", "dry_s", "lost_s")
    return {
        "line": said.line.text,
        "utterance": ignored.utterance,
        "is_cut": ignored.is_cut,
        **{name: _rounded(getattr(ignored, name)) for name in figures},
        "model_calls": ignored.model_calls,
        "turns": ignored.turns,
        "decisions": [
            decision_in_words(each, ignored.said.line.shown) for each in ignored.decisions
        ],
    }


def _decision(decision: TurnDecision) -> dict[str, Any]:
    return {**asdict(decision), "at_s": _rounded(decision.at_s)}


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
