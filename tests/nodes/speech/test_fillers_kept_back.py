"""When no filler is said though an answer does not come: nobody waits for the agent then."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from bargein import App, ChatNode
from bargein.events import (
    AgentAudio,
    StageStalled,
    TalkKeyChanged,
    UserStartedSpeaking,
    VoiceStarted,
    VoiceStopped,
)
from bargein.speech import Speech
from bargein.testing import ScriptedModel, open_call

from .failing import WordEar, WordVoice
from .test_streaming_ears import ScriptedEar

LATE = (9.0, "Here I am.")


def app_with(*replies: Any, ear: Any = None) -> App:
    async def answer(call: Any) -> None:
        call.converse(ChatNode(ScriptedModel(*replies)))

    return App(answer, speech=Speech(ear or WordEar(), WordVoice()))


def said(caller: Any) -> list[float]:
    """Return when audio of the agent was made."""
    return [r.at_s for r in caller.received if isinstance(r.event, AgentAudio)]


async def test_a_call_that_is_paused_says_no_filler(autojump_clock):
    """Paused by a person, the agent is silent for as long as they wish."""
    async with open_call(app_with([*LATE]), own_speech=True) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await caller.at(2.0)
        caller.call.handle.pause()
        await caller.at(30.0)
        assert (caller.heard, caller.events(StageStalled)) == ("", [])


async def test_a_filler_that_is_being_said_is_held_by_a_pause(autojump_clock):
    """Its rest is heard after the pause, and no second one comes meanwhile."""
    async with open_call(app_with([*LATE]), own_speech=True) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await caller.at(3.45)
        caller.call.handle.pause()
        await caller.at(20.0)
        assert caller.heard == "One"
        assert len(caller.events(StageStalled)) == 1


async def test_after_a_hang_up_no_filler_is_said(autojump_clock):
    """A caller who has left gets no filler and no apology."""
    async with open_call(app_with([*LATE]), own_speech=True) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await caller.at(2.0)
        caller.call.end("hangup")
        sounds = said(caller)
        await trio.sleep(20)
        assert (said(caller), caller.events(StageStalled)) == (sounds, [])


async def test_a_hang_up_ends_a_filler(autojump_clock):
    """In mid-word, as all that is said."""
    async with open_call(app_with([*LATE]), own_speech=True) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await caller.at(3.45)
        caller.call.end("hangup")
        await trio.sleep(20)
        assert len(caller.events(StageStalled)) == 1
        assert caller.heard == "One"


@pytest.mark.parametrize("talks", [VoiceStarted, UserStartedSpeaking])
async def test_a_caller_who_talks_is_not_talked_over(autojump_clock, talks):
    """Whether it is a turn yet or only a voice, the caller makes a sound."""
    async with open_call(app_with([*LATE], "Yes."), own_speech=True) as caller:
        await caller.says("hello", at_s=0.0, takes_s=1.0)
        await caller.at(2.5)
        caller.publish(talks())
        await caller.at(8.0)
        assert (caller.heard, caller.events(StageStalled)) == ("", [])
        caller.publish(VoiceStopped())


async def test_while_the_talk_key_is_down_no_filler_is_said(autojump_clock):
    """The caller has the word for as long as they hold it, and thinks in peace."""
    ear = ScriptedEar()
    async with open_call(app_with("Yes.", ear=ear), own_speech=True) as caller:
        caller.publish(TalkKeyChanged(down=True))
        caller.publish(VoiceStarted())
        caller.publish(UserStartedSpeaking())
        await caller.at(1.0)
        caller.publish(VoiceStopped())
        await caller.at(9.0)
        assert (caller.heard, caller.events(StageStalled)) == ("", [])
