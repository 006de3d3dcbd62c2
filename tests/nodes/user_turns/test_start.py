"""When a turn begins while the agent is idle."""

from __future__ import annotations

from dataclasses import replace

import pytest
import trio

from bargein import Call, ChatNode
from bargein.events import VoiceStarted, VoiceStopped
from bargein.testing import ScriptedModel, open_call
from bargein.user_turns import (
    FixedEndpointing,
    Sound,
    StartOnVoice,
    StartOnWords,
    TurnSettings,
    TurnTaking,
    WakePhrase,
)

from .conftest import says


def test_a_voice_begins_at_once():
    """By default the first moment of a voice is enough."""
    assert StartOnVoice().begins(Sound(0.0))


def test_a_voice_may_have_to_last():
    """Words are enough, however short their sound was."""
    start = StartOnVoice(after_s=0.3)
    assert not start.begins(Sound(0.0, voiced_s=0.2))
    assert start.begins(Sound(0.0, voiced_s=0.3))
    assert start.begins(Sound(0.0, voiced_s=0.1, text="tea"))
    assert start.ask_after_s == 0.3


def test_words_begin_a_turn():
    """StartOnWords counts words, or characters where there are no spaces."""
    assert not StartOnWords().begins(Sound(0.0, voiced_s=9.0))
    assert StartOnWords().begins(Sound(0.0, text="tea"))
    assert not StartOnWords(2).begins(Sound(0.0, text="tea"))
    assert StartOnWords(2).begins(Sound(0.0, text="紅茶"))
    assert StartOnWords().ask_after_s is None


def test_a_phrase_wakes():
    """It may stand anywhere, in any spelling; for a while after a turn none is needed."""
    start = WakePhrase(("hey robot", "kaffeemühle"), awake_s=5.0)
    assert not start.begins(Sound(0.0, text="hey you"))
    assert start.begins(Sound(0.0, text="Well. Hey, Robot!"))
    assert start.begins(Sound(0.0, text="Kaffeemuhle an"))
    assert start.begins(Sound(0.0, since_turn_s=5.0))
    assert not start.begins(Sound(0.0, text="robot", since_turn_s=5.1))
    assert start.ignores(Sound(0.0, text="robot", since_turn_s=5.1))
    assert start.ask_after_s is None


WAKE = TurnSettings(start=WakePhrase(("robot",), awake_s=5.0), endpointing=FixedEndpointing(0.5))


def _say(b, text):
    """Say something in a second; the words come with the silence behind them."""
    return b.take(VoiceStarted()).wait(1.0).take(VoiceStopped()).take(says(text)).wait(0.5)


def test_what_is_said_without_the_phrase_is_no_turn(bench):
    """Before the phrase, and when the conversation is over; between them every word is a turn."""
    b = _say(bench(settings=WAKE), "lay the table")
    assert (b.turns, b.decisions) == ([], ["ignored: WakePhrase"])
    turn = ["start", "robot how late is it", "stop"]
    assert _say(b, "robot how late is it").turns == turn
    turn += ["start", "and the weather", "stop"]
    assert _say(b.wait(5.0), "and the weather").turns == turn
    assert _say(b.wait(5.1), "the soup is ready").turns == turn


def test_an_answer_keeps_the_agent_awake(bench, idle, speaking):
    """The time counts from the end of the agent's answer, however long that was."""
    b = _say(bench(settings=WAKE), "robot tell a story")
    b.agent(speaking).wait(60.0).agent(idle).wait(4.0)
    assert _say(b, "another one").turns[-2:] == ["another one", "stop"]


def test_words_that_were_kept_keep_the_agent_awake(bench, idle, speaking):
    """They become a turn after speech that may not be cut, and the next words need no phrase."""
    b = _say(bench(replace(speaking, may_be_cut=False), WAKE), "how late is it").wait(3.0)
    b.agent(idle).wait(1.0)
    assert b.turns == ["start", "how late is it", "stop"]
    assert _say(b, "and the weather").turns[-3:] == ["start", "and the weather", "stop"]


async def test_the_talk_key_needs_no_phrase(autojump_clock):
    """Who presses the key speaks to the agent, even if the words come after its release."""

    async def answer(call: Call) -> None:
        call.converse(ChatNode(ScriptedModel("One latte.")))
        TurnTaking(WAKE).attach(call)

    async with open_call(answer) as caller:
        caller.call.talk(down=True)
        caller.publish(VoiceStarted())
        await trio.sleep(1.0)
        caller.call.talk(down=False)
        caller.publish(VoiceStopped())
        await trio.sleep(0.2)
        caller.publish(says("a latte"))
        await caller.quiet()
    assert caller.heard == "One latte."


def test_wrong_numbers_fail_when_made():
    """The error names the strategy and the number."""
    with pytest.raises(ValueError, match=r"WakePhrase\(awake_s=\)"):
        WakePhrase(("robot",), -1)
    for wrong in ("robot", ["robot"], ("robot", 1), None):
        with pytest.raises(TypeError, match=r"WakePhrase\(phrases=\) is a tuple of strings"):
            WakePhrase(wrong)
    for wrong in (("robot", "?!"), ("",), ()):
        with pytest.raises(ValueError, match=r"WakePhrase\(phrases=\)"):
            WakePhrase(wrong)
    with pytest.raises(ValueError, match=r"StartOnVoice\(after_s=\)"):
        StartOnVoice(-1)
    with pytest.raises(ValueError, match=r"StartOnWords\(min_words=\)"):
        StartOnWords(0)
