"""What is told about runs."""

import dataclasses
from typing import get_args

import pytest

from bargein.routes import Decision, Interruption, Outcome


def test_the_outcome_words():
    """There are eight words for how a run ends."""
    assert get_args(Outcome) == (
        "completed", "interrupted", "redirected", "backgrounded",
        "capped", "failed", "disconnected", "shutdown",
    )  # fmt: skip


def test_an_interruption_does_not_change():
    """What is told about a cut cannot be changed by who is told."""
    told = Interruption(1, "bridge.on(X)", "agent", None, "why", "running", 1.0, 0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        told.reason = "else"


def test_a_decision_is_a_line():
    """A decision reads as time, event, message, verdict and why."""
    assert Decision(1.0, "x", 2, "cut", "rule")._asdict() == {
        "at_s": 1.0,
        "event": "x",
        "message": 2,
        "verdict": "cut",
        "why": "rule",
    }
