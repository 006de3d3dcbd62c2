"""Mistakes in what a vendor's class is given, by those arguments too that all of its kind take."""

from __future__ import annotations

from bargein.ears import DeepgramFlux
from bargein.llm import OpenAIChat
from bargein.voices import OpenAIVoice


def providers() -> list[object]:
    """An argument of another name, one of another type, and one of another kind of class."""
    # wrong: call-arg, reportCallIssue
    ear = DeepgramFlux(url="wss://mine.example")
    # wrong: arg-type, reportArgumentType
    other = DeepgramFlux(base_url=7)
    # wrong: call-arg, reportCallIssue
    model = OpenAIChat("m", dial=None)
    # wrong: arg-type, reportArgumentType
    voice = OpenAIVoice("marin", headers=["x-team"])
    return [ear, other, model, voice]
