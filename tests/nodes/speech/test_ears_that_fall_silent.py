"""An ear that falls silent after words: callers who think, and callers who wait for an answer."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bargein import App, Budgets, ChatNode
from bargein.events import EarFellSilent, StageStalled, UserTranscriptionReceived
from bargein.fallback import Fallback
from bargein.server import Metrics
from bargein.speech import (
    Fillers,
    PerhapsOver,
    Speech,
    TurnOver,
    VoiceBegan,
    WordsHeard,
)
from bargein.testing import ScriptedModel, open_call

from .failing import RATE_HZ, Fault, WordEar, WordVoice, speak, stream
from .test_streaming_ears import ScriptedEar


def app_with(ear: Any, **options: Any) -> App:
    async def answer(call: Any) -> None:
        call.converse(ChatNode(ScriptedModel(*["Sure."] * 3)))

    return App(answer, speech=Speech(ear, WordVoice()), **options)


def turns_of(caller: Any) -> list[str]:
    return [e.content for e in caller.events(UserTranscriptionReceived) if e.final]


async def be_silent(caller: Any, seconds: float) -> None:
    await stream(caller.call, bytes(round(2 * RATE_HZ * seconds)))


@pytest.fixture
def ear() -> ScriptedEar:
    """Return an ear that reports the facts that it is given."""
    return ScriptedEar()


async def test_an_ear_that_tells_no_end_keeps_the_caller_waiting(autojump_clock, ear):
    """The stage is the ear, and the caller hears a filler; the turn ends by its longest silence."""
    async with open_call(app_with(ear), own_speech=True) as caller:
        await be_silent(caller, 1.0)  # the fillers are made
        ear.tell(VoiceBegan(), WordsHeard("a latte"), PerhapsOver(0.6))
        await be_silent(caller, 8.0)
        assert len(caller.events(EarFellSilent)) == 1
        (stalled, *_) = caller.events(StageStalled)
        assert (stalled.stage, stalled.silent_s) == ("ear", 1.8)
        assert turns_of(caller) == ["a latte"]
        await caller.quiet()
        assert caller.heard.startswith(Fillers().fillers[0])
        assert caller.heard.endswith("Sure.")


async def test_an_ear_that_says_that_it_waits_is_left_alone(autojump_clock, ear):
    """A caller who thinks, and an ear that tells so, are not disturbed."""
    async with open_call(app_with(ear), own_speech=True) as caller:
        await be_silent(caller, 1.0)
        ear.tell(VoiceBegan(), WordsHeard("a latte"), PerhapsOver(0.6))
        for _ in range(10):
            await be_silent(caller, 0.5)
            ear.tell(WordsHeard("a latte"))
        assert caller.events(StageStalled) == []
        ear.tell(TurnOver("a latte and a muffin"))
        await caller.quiet()
        assert caller.heard == "Sure."


async def test_what_a_silent_ear_tells_in_the_end_counts(autojump_clock, ear):
    """It was not dead; its turn ends when it says so."""
    async with open_call(app_with(ear), own_speech=True) as caller:
        await be_silent(caller, 1.0)
        ear.tell(VoiceBegan(), WordsHeard("a latte"), PerhapsOver(0.6))
        await be_silent(caller, 1.5)
        ear.tell(WordsHeard("a latte and"))
        await be_silent(caller, 0.5)
        assert caller.events(StageStalled) == []
        ear.tell(TurnOver("a latte and a muffin"))
        await caller.quiet()
        assert turns_of(caller) == ["a latte and a muffin"]


async def test_the_stage_may_be_left_unwatched(autojump_clock, ear):
    """An app whose callers think for long asks for no filler."""
    app = app_with(ear, budgets=Budgets(ear_s=None))
    async with open_call(app, own_speech=True) as caller:
        await be_silent(caller, 1.0)
        ear.tell(VoiceBegan(), WordsHeard("a latte"), PerhapsOver(0.6))
        await be_silent(caller, 7.0)
        await caller.quiet()
        assert caller.heard == "Sure."


async def test_another_ear_ends_the_turn(autojump_clock):
    """The second ear hears the utterance again when the first one falls silent, and decides."""
    first, second = WordEar("a"), WordEar("b")
    first.ends_fault = Fault("stall")
    ear = Fallback(first, second)
    async with open_call(app_with(ear), own_speech=True) as caller:
        await be_silent(caller, 1.0)
        await speak(caller.call, "please tell me more")
        await be_silent(caller, 2.0)
        assert turns_of(caller) == ["please tell me more"]
        assert caller.events(StageStalled) == []
        assert (first.streams, second.streams) == (1, 1)
        await caller.quiet()
        assert caller.heard == "Sure."


async def test_an_ear_is_not_blamed_for_a_caller_who_thinks(autojump_clock):
    """If no ear finds the turn over, none has failed, and the first silence asks each once."""

    class Patient(WordEar):
        def __init__(self, name: str) -> None:
            super().__init__(name)
            self.ends_fault = Fault("stall")

    first, second = Patient("a"), Patient("b")
    ear = Fallback(first, second)
    async with open_call(app_with(ear, budgets=None), own_speech=True) as caller:
        await be_silent(caller, 1.0)
        await speak(caller.call, "please tell me more")
        await be_silent(caller, 5.0)
        assert (first.streams, second.streams) == (1, 1)
        await speak(caller.call, "about it")
        await be_silent(caller, 0.1)
    assert 'failures_total{kind="ear",provider="Patient"} 0' in Metrics().exposition()
    assert 'failures_total{kind="ear",provider="Patient #2"} 0' in Metrics().exposition()
    await trio.lowlevel.checkpoint()
    del ear
