"""An ear that fails for good within a turn: what the caller hears, and when they are answered."""

from __future__ import annotations

import pytest
import trio

from bargein import App, ChatNode
from bargein.events import (
    ListeningFailed,
    StageStalled,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)
from bargein.speech import Fillers, PerhapsOver, StreamingSpeech, VoiceBegan, WordsHeard
from bargein.testing import ScriptedModel, open_call

from .failing import RATE_HZ, WordVoice, stream
from .hearing import times
from .test_streaming_ears import ScriptedEar

APOLOGY, MOMENT = Fillers().apology, Fillers().fillers[0]


def app_with(ear: ScriptedEar) -> App:
    async def answer(call) -> None:
        call.converse(ChatNode(ScriptedModel("Sure.")))

    return App(answer, speech=StreamingSpeech(ear, WordVoice()))


async def be_silent(caller, seconds: float) -> None:
    await stream(caller.call, bytes(round(2 * RATE_HZ * seconds)))


@pytest.mark.parametrize("paused", [True, False])
async def test_words_that_a_lost_ear_has_told_are_answered_at_once(autojump_clock, paused) -> None:
    """A turn does not wait for the longest silence after its ear was lost."""
    ear = ScriptedEar()
    async with open_call(app_with(ear), own_speech=True, expect_errors=True) as caller:
        await be_silent(caller, 5.0)  # the fillers are made
        ear.tell(VoiceBegan(), WordsHeard("a latte"), *([PerhapsOver(0.6)] if paused else []))
        await be_silent(caller, 0.2)
        ear.tell(OSError("the line broke"))
        failed_s = trio.current_time()
        await be_silent(caller, 8.0)
        said = [e.content for e in caller.events(UserTranscriptionReceived) if e.final]
        assert said == ["a latte"]
        assert times(caller, UserStoppedSpeaking)[0] - failed_s < (0.1 if paused else 1.0)
        await caller.quiet()
        assert caller.heard.split() == [*APOLOGY.split(), "Sure."]


async def test_behind_the_apology_nobody_is_asked_to_wait(autojump_clock) -> None:
    """Of an ear that is lost no words come, so "One moment." would be untrue."""
    ear = ScriptedEar()
    async with open_call(app_with(ear), own_speech=True, expect_errors=True) as caller:
        await be_silent(caller, 5.0)
        ear.tell(VoiceBegan())
        await be_silent(caller, 0.2)
        ear.tell(OSError("the line broke"))
        await be_silent(caller, 12.0)
        assert len(caller.events(ListeningFailed)) == 1
        assert {stalled.stage for stalled in caller.events(StageStalled)} == {"ear"}
        assert APOLOGY in caller.heard
        assert MOMENT not in caller.heard
