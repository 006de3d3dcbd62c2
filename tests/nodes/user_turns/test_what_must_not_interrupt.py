"""Speech that may not be cut, mutes, and what becomes of the words that they keep."""

from __future__ import annotations

from dataclasses import replace

from bargein.events import UserTranscriptionReceived, VoiceStarted, VoiceStopped, VoiceWords
from bargein.nodes.user_turns._turn_taking_state import HoldSpeech
from bargein.user_turns import TurnSettings

from .conftest import says


def test_speech_that_may_not_be_cut_is_heard_to_its_end(bench, speaking, idle):
    """Nothing is held, and the caller's words are a turn after it."""
    b = bench(replace(speaking, may_be_cut=False)).take(VoiceStarted()).wait(1.0)
    b.take(VoiceStopped()).take(says("no, not that one")).wait(3.0)
    assert b.at(HoldSpeech) == float("inf")
    assert b.turns == []
    assert b.decisions == ["muted: interruptible", "kept: interruptible"]
    b.agent(idle)
    assert b.turns == ["start", "no, not that one", "stop"]


def test_what_follows_speech_that_may_not_be_cut(bench, speaking):
    """The flag ends with the utterance: the words then cut what follows."""
    b = bench(replace(speaking, may_be_cut=False)).take(VoiceStarted()).wait(0.4)
    b.take(VoiceStopped()).take(says("stop")).wait(3.0).agent(speaking)
    assert b.turns == ["start", "stop", "stop"]


def test_a_voice_that_outlasts_what_it_may_not_cut(bench, speaking):
    """A caller who is still speaking by then interrupts at once."""
    b = bench(replace(speaking, may_be_cut=False)).take(VoiceStarted()).wait(2.0)
    assert b.turns == []
    b.agent(speaking)
    assert b.turns == ["start"]


def test_the_first_message_is_muted(bench, speaking, idle):
    """mute=("first_message",): the caller's words are kept until the agent is done."""
    b = bench(replace(speaking, first_message=True), TurnSettings(mute=("first_message",)))
    b.take(VoiceStarted()).wait(0.6).take(VoiceStopped()).take(says("I have a question")).rest()
    assert b.turns == []
    b.agent(replace(speaking, first_message=False)).wait(1.0)
    assert b.turns == []
    b.agent(idle)
    assert b.turns == ["start", "I have a question", "stop"]


def test_a_tool_is_muted(bench, working, speaking, idle):
    """mute=("tool",): not even "stop" interrupts, and it is answered after."""
    b = bench(replace(working, state="tool"), TurnSettings(mute=("tool",)))
    b.take(VoiceStarted()).wait(0.4).take(VoiceStopped()).wait(0.2).take(says("stop")).rest()
    b.agent(speaking).wait(1.0).agent(idle)
    assert b.turns == ["start", "stop", "stop"]
    assert b.decisions[:2] == ["muted: mute tool", "kept: mute tool"]


def test_words_without_a_voice_are_muted_too(bench, working, idle):
    """A recogniser that is faster than the voice detector does not get around a mute."""
    b = bench(replace(working, state="tool"), TurnSettings(mute=("tool",))).take(says("stop"))
    assert b.turns == []
    b.wait(0.05).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).take(says("")).rest()
    b.agent(idle)
    assert b.turns == ["start", "stop", "stop"]


def test_a_muted_acknowledgement_is_nothing(bench, speaking, idle):
    """An acknowledgement is not answered later either."""
    b = bench(replace(speaking, may_be_cut=False)).take(VoiceStarted()).wait(0.3)
    b.take(VoiceStopped()).take(says("mhm")).wait(1.0).agent(idle)
    assert b.turns == []


def test_kept_words_tell_their_language_and_speaker(bench, speaking, idle):
    """What the ear knows of them goes with them: those of most words, and the least confidence."""
    b = bench(replace(speaking, may_be_cut=False))
    for text, language, confidence in (("bonjour", "fr", 0.9), ("where is my parcel", "en", 0.8)):
        b.take(VoiceStarted()).wait(0.8).take(VoiceStopped())
        b.take(VoiceWords(content=text, language=language, speaker="A", confidence=confidence))
        b.wait(1.0)
    b.agent(idle)
    [told] = b.events(UserTranscriptionReceived)
    assert told.content == "bonjour where is my parcel"
    assert (told.language, told.speaker, told.confidence) == ("en", "A", 0.8)


def test_kept_words_are_part_of_the_interruption_that_follows(bench, working, speaking):
    """An interruption includes the kept words in its turn."""
    b = bench(replace(working, state="tool"), TurnSettings(mute=("tool",)))
    b.take(VoiceStarted()).wait(0.4).take(VoiceStopped()).take(says("not the red one")).rest()
    b.agent(speaking).wait(1.0).take(VoiceStarted()).wait(0.3).take(VoiceStopped())
    b.take(says("stop")).wait(2.0)
    assert b.turns == ["start", "not the red one stop", "stop"]


def test_a_mute_that_begins_in_mid_word_lets_go(bench, speaking):
    """A hold does not outlast the moment from which on nothing may interrupt."""
    b = bench(speaking, TurnSettings(mute=("tool",))).take(VoiceStarted())
    assert b.is_held
    b.wait(0.1).agent(replace(speaking, state="tool"))
    assert not b.is_held
