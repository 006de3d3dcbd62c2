"""When the turns of a caller begin and end, without a call."""

from __future__ import annotations

import pytest

from bargein.events import (
    TranscriptionFailed,
    TurnDecided,
    TurnLikelyOver,
    TurnScored,
    TurnWentOn,
    UserTranscriptionReceived,
    VoiceSettled,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)
from bargein.nodes.user_turns._turn_taking_core import MicrophoneLost
from bargein.user_turns import (
    DynamicEndpointing,
    FixedEndpointing,
    StartOnVoice,
    StartOnWords,
    TurnSettings,
)

from .conftest import says

FIXED = TurnSettings(endpointing=FixedEndpointing(0.5))


def test_a_voice_begins_a_turn_at_once(bench):
    """While the agent is idle a turn begins in the step in which the voice does."""
    b = bench().take(VoiceStarted())
    assert b.turns == ["start"]
    assert b.decisions == ["turn: StartOnVoice"]


def test_a_turn_ends_when_silence_and_words_are_complete(bench):
    """The end comes when the silence has lasted, and the words are known; then all is settled."""
    b = bench(settings=FIXED).take(VoiceStarted()).wait(1.0).take(VoiceStopped()).wait(0.2)
    b.take(says("a large latte")).wait(0.29)
    assert b.turns == ["start"]
    b.wait(0.01)
    assert b.turns == ["start", "a large latte", "stop"]
    assert isinstance(b.events()[-1], VoiceSettled)


def test_late_words_end_a_turn_at_once(bench):
    """Words that come after the silence has lasted long enough end the turn in their own step."""
    b = bench(settings=FIXED).take(VoiceStarted()).wait(1.0).take(VoiceStopped()).wait(3.0)
    assert b.turns == ["start"]
    b.take(says("a large latte"))
    assert b.turns == ["start", "a large latte", "stop"]


FAILED = VoiceWords(content="", error="ConnectionError")


@pytest.mark.parametrize("blank", ["", "\u200b"])
def test_a_sound_without_words_is_no_turn(bench, blank):
    """What began as a turn, and has no words, is taken back: there is nothing to answer."""
    b = bench(settings=FIXED).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).take(says(blank))
    b.wait(0.5)
    assert b.turns == ["start", "no_words"]
    assert b.decisions[-1] == "no_words: FixedEndpointing"
    assert not b.events(TranscriptionFailed)[0].interrupted


def test_words_that_never_come_are_waited_for_in_bounded_time(bench):
    """Without words there is no turn, and words_within_s later the failure is published."""
    b = bench(settings=FIXED).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(4.9)
    assert b.turns == ["start"]
    b.wait(0.1)
    assert b.turns == ["start", "timed_out"]
    assert b.decisions[-1] == "timed_out: words_within_s"
    assert b.core.is_quiet


def test_words_that_come_after_their_deadline_are_a_turn(bench, speaking):
    """They are never dropped, whatever the agent does by then."""
    for view in (bench().view, speaking):
        b = bench(settings=FIXED).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(6.0)
        b.agent(view).take(says("a large latte")).wait(1.0)
        assert b.turns == ["start", "timed_out", "start", "a large latte", "stop"]


def test_a_recogniser_that_fails_makes_no_turn(bench):
    """A failure is published at the end of the pause, and later words are a turn of their own."""
    b = bench(settings=FIXED).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).take(FAILED)
    assert b.turns == ["start"]
    b.wait(0.5)
    assert b.turns == ["start", "failed"]
    (told,) = b.events(TranscriptionFailed)
    assert (told.error, told.interrupted) == ("ConnectionError", False)
    b.take(VoiceStarted()).wait(0.3).take(VoiceStopped()).take(says("a tea")).wait(0.5)
    assert b.turns[2:] == ["start", "a tea", "stop"]


def test_a_recogniser_that_fails_and_then_works_makes_one_turn(bench):
    """A failure in a pause does not count once all words of the turn are known."""
    b = bench(settings=FIXED).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).take(FAILED)
    b.wait(0.2).take(VoiceStarted()).wait(0.3).take(VoiceStopped())
    b.take(says("a large tea")).wait(0.5)
    assert b.turns == ["start", "a large tea", "stop"]


def test_a_recogniser_that_fails_costs_no_words_that_are_known(bench):
    """Words of an earlier pause, and words that were not final, are a turn as far as they go."""
    b = bench(settings=FIXED).take(VoiceStarted()).wait(0.3).take(VoiceStopped())
    b.take(says("a large")).wait(0.2).take(VoiceStarted()).wait(0.3).take(VoiceStopped())
    b.take(FAILED).wait(0.5)
    assert b.turns == ["start", "a large", "stop"]
    b = bench(settings=FIXED).take(VoiceStarted()).take(says("a tea", final=False))
    b.wait(0.3).take(VoiceStopped()).take(FAILED).wait(0.5)
    assert b.turns == ["start", "a tea", "stop"]


@pytest.mark.parametrize("after_s", [0.2, None], ids=["fails", "stalls"])
def test_a_recogniser_that_fails_while_the_agent_speaks_lets_it_go_on(bench, speaking, after_s):
    """The hold is released without a turn, and the possible loss of words is published."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3)
    assert b.is_held
    b.take(VoiceStopped())
    if after_s is not None:
        b.wait(after_s).take(FAILED)
    b.wait(0.2)
    assert not b.is_held
    assert b.wait(6.0).turns == ["failed" if after_s is not None else "timed_out"]


def test_a_failed_interruption_says_that_it_was_one(bench, speaking):
    """A voice that lasts cuts the agent before its words are known; then they never are."""
    b = bench(speaking).take(VoiceStarted()).wait(1.0).take(VoiceStopped()).take(FAILED).wait(2.0)
    assert b.turns == ["start", "failed"]
    assert b.events(TranscriptionFailed)[0].interrupted


def test_interim_words_are_told_and_replaced(bench):
    """Interim transcripts are published as such; the last one is final and whole."""
    b = bench(settings=FIXED).take(VoiceStarted()).take(says("a", final=False))
    b.wait(0.4).take(says("a large", final=False)).take(VoiceStopped())
    b.take(says("a large latte")).wait(1.0)
    told = [(e.content, e.final) for e in b.events(UserTranscriptionReceived)]
    assert told == [
        ("a", False),
        ("a large", False),
        ("a large latte", False),
        ("a large latte", True),
    ]


def test_segments_are_joined_in_order(bench):
    """A turn is its segments in their order, whichever came first."""
    b = bench(settings=FIXED).take(VoiceStarted()).take(says("latte", segment=1))
    b.take(says("a large", segment=0)).take(VoiceStopped()).wait(1.0)
    assert b.turns == ["start", "a large latte", "stop"]


def test_the_lowest_confidence_is_that_of_the_turn(bench):
    """The final transcript has the lowest confidence of its segments, if all have one."""
    b = bench(settings=FIXED).take(VoiceStarted())
    b.take(VoiceWords(content="a large", confidence=0.9))
    b.take(VoiceWords(content="latte", segment=1, confidence=0.6)).take(VoiceStopped()).wait(1.0)
    assert b.events(UserTranscriptionReceived)[-1].confidence == 0.6


def test_a_pause_that_goes_on_is_told(bench):
    """TurnLikelyOver is published once, and TurnWentOn when the caller goes on."""
    b = bench(settings=FIXED).take(VoiceStarted()).take(VoiceStopped()).take(says("a large"))
    assert [e.content for e in b.events(TurnLikelyOver)] == ["a large"]
    b.wait(0.3).take(VoiceStarted())
    assert len(b.events(TurnWentOn)) == 1
    b.wait(1.0).take(VoiceStopped()).wait(0.6)
    assert b.turns == ["start"], "the words of the second sound are not known yet"
    b.take(says("a large tea"))
    assert b.turns == ["start", "a large tea", "stop"]
    assert len(b.events(TurnLikelyOver)) == 1, "it ended at once"


def test_a_likely_end_is_told_again_with_other_words(bench):
    """Words that change within a pause are published again."""
    b = bench(settings=FIXED).take(VoiceStarted()).take(VoiceStopped()).take(says("a tee"))
    b.take(says("a tea"))
    assert [e.content for e in b.events(TurnLikelyOver)] == ["a tee", "a tea"]


def test_the_pauses_of_a_caller_are_learned(bench, working):
    """Pauses within a turn, and premature ends, make the next wait longer."""
    dynamic = DynamicEndpointing(min_s=0.3, max_s=2.0, margin=1.5, weight=1.0)
    b = bench(settings=TurnSettings(endpointing=dynamic))
    b.take(VoiceStarted()).wait(0.5).take(VoiceStopped()).wait(0.28).take(VoiceStarted()).wait(0.5)
    b.take(VoiceStopped()).take(says("a large")).wait(0.41)
    assert b.turns == ["start"]
    b.wait(0.02)
    assert b.turns[-1] == "stop"
    b.agent(working).wait(0.17).take(VoiceStarted()).wait(0.6).take(VoiceStopped())
    b.take(says("latte")).wait(0.89)
    assert b.turns[-1] == "start"
    b.wait(0.02)
    assert b.turns[-1] == "stop"


def test_a_complete_turn_ends_at_once(bench):
    """With a model, a turn that sounds complete ends as soon as its words are known."""
    b = bench().take(VoiceStarted()).wait(1.0).take(VoiceStopped()).wait(0.2)
    b.take(TurnScored(complete=0.9))
    assert b.turns == ["start"]
    b.take(says("a tea"))
    assert b.turns == ["start", "a tea", "stop"]
    [end] = [e for e in b.events(TurnDecided) if e.about == "end"]
    assert (end.rule, end.values) == (
        "ModelEndpointing",
        {"silent_s": 0.2, "wait_s": 0.0, "evidence": "sound", "score": 0.9},
    )


def test_an_incomplete_turn_waits(bench):
    """A score of 0 waits for the longest pause; a new sound forgets the score."""
    b = bench().take(VoiceStarted()).wait(1.0).take(VoiceStopped()).take(TurnScored(complete=0.0))
    b.take(says("a large latte")).wait(1.29)
    assert b.turns == ["start"]
    b.wait(0.01)
    assert b.turns[-1] == "stop"


def test_an_unfinished_sentence_waits_though_it_sounds_complete(bench):
    """Words that no sentence ends with outweigh the model; the decision says so."""
    b = bench().take(VoiceStarted()).wait(1.0).take(VoiceStopped()).take(TurnScored(complete=0.97))
    b.take(says("I would like a")).wait(1.49)
    assert b.turns == ["start"]
    assert not b.events(TurnLikelyOver)
    b.wait(0.01)
    assert b.turns[-1] == "stop"
    assert b.events(TurnDecided)[-1].values == {
        "silent_s": 1.5,
        "wait_s": 1.5,
        "evidence": "unfinished",
        "unfinished": True,
        "score": 0.97,
    }


def test_who_stopped_to_think_once_is_waited_for_again(bench):
    """After a pause of 0.6 s a turn's end takes 1.3 times as long; the next turn's does not."""
    b = bench().take(VoiceStarted()).wait(1.0).take(VoiceStopped())
    b.take(says("I would like")).wait(0.6).take(VoiceStarted()).wait(1.0).take(VoiceStopped())
    b.take(says("I would like a large latte")).take(TurnScored(complete=0.9)).wait(0.76)
    assert b.turns == ["start"]
    b.wait(0.03)
    assert b.turns[-1] == "stop"
    b.wait(5.0).take(VoiceStarted()).wait(1.0).take(VoiceStopped())
    b.take(says("that is all")).take(TurnScored(complete=0.9))
    assert b.turns[-1] == "stop"


def test_who_was_cut_off_is_waited_for_longer(bench):
    """A turn that goes on half a second after it was ended was ended too early."""
    b = bench().take(VoiceStarted()).wait(1.0).take(VoiceStopped())
    b.take(says("my sister")).take(TurnScored(complete=0.9))
    assert b.turns == ["start", "my sister", "stop"]
    b.wait(0.5).take(VoiceStarted()).wait(1.0).take(VoiceStopped())
    b.take(says("and her husband")).take(TurnScored(complete=0.9)).wait(0.64)
    assert b.turns[3:] == ["start"]
    b.wait(0.01)
    assert b.turns[-1] == "stop"


def test_who_interrupts_the_first_words_of_an_answer_was_cut_off(bench, speaking):
    """So little of the answer was heard that the caller just goes on; not so a second later."""
    for pause_s, wait_s in ((0.7, 0.91), (1.1, 0.0)):
        b = bench().take(VoiceStarted()).wait(1.0).take(VoiceStopped())
        b.take(says("my sister")).take(TurnScored(complete=0.9)).wait(pause_s - 0.2)
        b.agent(speaking)
        b.wait(0.2).take(VoiceStarted()).wait(1.0)
        assert b.turns[3:] == ["start"]
        b.take(VoiceStopped()).take(says("and her husband")).take(TurnScored(complete=0.9))
        b.wait(max(0.0, wait_s - 0.01))
        assert (b.turns[-1] == "stop") == (not wait_s)
        b.wait(0.03)
        assert b.turns[-1] == "stop"


def test_a_turn_is_ended_by_force(bench, speaking, idle):
    """A turn that lasts too long is ended, the agent gets room, and what goes on is kept."""
    b = bench(settings=TurnSettings(longest_turn_s=10.0, endpointing=FixedEndpointing(0.5)))
    b.take(VoiceStarted()).wait(5.0).take(says("once upon a time", final=False)).wait(5.0)
    assert b.turns == ["start", "once upon a time", "stop"]
    assert b.decisions[-1] == "forced: longest_turn_s"
    b.agent(speaking)
    b.wait(3.0).take(says("there was a king"))
    assert not b.is_held
    assert b.turns == ["start", "once upon a time", "stop"]
    b.take(VoiceStopped()).wait(1.0)
    assert b.decisions[-1] == "kept: longest_turn_s"
    b.agent(idle)
    assert b.turns[3:] == ["start", "there was a king", "stop"]


def test_a_forced_end_that_nobody_answers(bench):
    """A voice that goes on after a forced end is a turn again once it has words."""
    b = bench(settings=TurnSettings(longest_turn_s=10.0)).take(VoiceStarted()).wait(12.0)
    assert b.turns == ["start", "timed_out"]
    b.take(says("are you there", final=False))
    assert b.turns == ["start", "timed_out", "start"]


def test_a_voice_detector_that_is_stuck(bench):
    """A voice that never stops and never has words is one turn, and then none any more."""
    b = bench(settings=TurnSettings(longest_turn_s=10.0)).take(VoiceStarted()).rest()
    assert b.turns == ["start", "timed_out"]
    assert b.now_s == 25.0
    b.take(VoiceStopped()).wait(0.2).take(VoiceStarted())
    assert b.turns == ["start", "timed_out", "start"]


def test_a_turn_without_limit(bench):
    """longest_turn_s=None lets a turn last."""
    b = bench(settings=TurnSettings(longest_turn_s=None)).take(VoiceStarted()).wait(500.0)
    assert b.turns == ["start"]


def test_a_microphone_that_falls_silent_ends_the_turn(bench):
    """Lost audio counts as a stop."""
    b = bench(settings=FIXED).take(VoiceStarted()).wait(1.0).take(MicrophoneLost())
    b.take(says("a large")).wait(0.5)
    assert b.turns == ["start", "a large", "stop"]


def test_a_stop_that_never_comes(bench):
    """A voice counts as stopped if its words are final and nothing more comes."""
    b = bench().take(VoiceStarted()).wait(1.0).take(says("a tea")).wait(9.9)
    assert b.turns == ["start"]
    b.wait(0.1)
    assert b.turns == ["start", "a tea", "stop"]


def test_a_stop_without_a_start_does_nothing(bench):
    """A stop without a start makes no turn, and the next turn works as usual."""
    b = bench(settings=FIXED).take(VoiceStopped()).wait(5.0)
    assert b.acts == []
    b.take(VoiceStarted()).wait(1.0).take(VoiceStopped()).take(says("a tea")).wait(1.0)
    assert b.turns == ["start", "a tea", "stop"]


def test_words_without_a_voice_are_a_turn(bench):
    """A recogniser without a voice detector is enough."""
    b = bench(settings=FIXED).take(says("a tea")).wait(0.5)
    assert b.turns == ["start", "a tea", "stop"]


def test_the_same_words_twice_are_two_turns(bench):
    """What is final counts, also when it has been said before."""
    b = bench(settings=FIXED).take(says("yes")).wait(1.0).take(says("yes")).wait(1.0)
    assert b.turns == ["start", "yes", "stop"] * 2


def test_an_old_interim_is_no_turn(bench):
    """An interim transcript that comes after its turn has ended is dropped."""
    b = bench(settings=FIXED).take(VoiceStarted()).take(VoiceStopped()).take(says("a large latte"))
    b.wait(1.0).take(says("a large", final=False)).wait(20.0)
    assert b.turns == ["start", "a large latte", "stop"]


def test_a_final_transcript_that_is_late_is_not_told_twice(bench):
    """Words that were published before they were final are not published again."""
    b = bench(settings=FIXED).take(VoiceStarted()).take(says("a large", final=False))
    b.take(VoiceStopped()).wait(6.0)
    assert b.turns == ["start", "a large", "stop"]
    b.take(says("A large latte.")).wait(6.0)
    assert b.turns == ["start", "a large", "stop", "start", "latte.", "stop"]
    b.take(says("And a tea")).wait(6.0)
    assert b.turns[6:] == ["start", "And a tea", "stop"]


def test_a_start_that_is_told_twice_is_one(bench):
    """A second start of a voice that goes on changes nothing."""
    b = bench(settings=FIXED).take(VoiceStarted()).wait(0.2).take(VoiceStarted()).wait(0.2)
    b.take(VoiceStopped()).take(VoiceStopped()).take(says("a tea")).wait(1.0)
    assert b.turns == ["start", "a tea", "stop"]


def test_a_turn_that_begins_with_words_only(bench):
    """StartOnWords begins no turn before a word, and none for a sound without words."""
    b = bench(settings=TurnSettings(start=StartOnWords(), endpointing=FixedEndpointing(0.5)))
    b.take(VoiceStarted()).wait(0.5).take(VoiceStopped()).take(says("")).wait(1.0)
    assert b.turns == []
    assert b.decisions == ["noise: words"]
    b.take(VoiceStarted()).wait(0.5).take(says("tea", final=False))
    assert b.turns == ["start"]


def test_too_few_words_to_begin_are_not_lost(bench):
    """StartOnWords(2): a single word begins a turn when it turns out to be all."""
    settings = TurnSettings(start=StartOnWords(2), endpointing=FixedEndpointing(0.5))
    b = bench(settings=settings).take(VoiceStarted()).take(says("tea", final=False))
    assert b.turns == []
    b.take(VoiceStopped()).take(says("tea")).wait(1.0)
    assert b.turns == ["start", "tea", "stop"]


def test_a_voice_that_has_to_last_to_be_a_turn(bench):
    """StartOnVoice(0.2) begins the turn once the voice has lasted, and none for a click."""
    b = bench(settings=TurnSettings(start=StartOnVoice(0.2)))
    b.take(VoiceStarted()).wait(0.1).take(VoiceStopped()).take(says("")).wait(9.0)
    assert b.turns == []
    b.take(VoiceStarted()).wait(0.19)
    assert b.turns == []
    b.wait(0.01)
    assert b.turns == ["start"]
