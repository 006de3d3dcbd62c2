"""The decisions of turn taking, without a call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.events import (
    TurnDecided,
    TurnLikelyOver,
    TurnScored,
    TurnWentOn,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
    VoiceHint,
    VoiceSettled,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)
from nodes.turns import (
    DynamicEndpointing,
    FixedEndpointing,
    ModelEndpointing,
    Sound,
    StartOnVoice,
    StartOnWords,
    TurnSettings,
    Verdict,
)
from nodes.turns._parts import Hold, MicrophoneLost, Release

FIXED = TurnSettings(endpointing=FixedEndpointing(0.5))


def says(text: str, *, final: bool = True, segment: int = 0) -> VoiceWords:
    return VoiceWords(content=text, final=final, segment=segment)


# --- an idle agent --------------------------------------------------------------------------------


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


def test_empty_words_end_a_turn_without_a_transcript(bench):
    """A turn of which the recogniser understood nothing ends, too."""
    b = bench(settings=FIXED).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).take(says(""))
    b.wait(0.5)
    assert b.turns == ["start", "stop"]


def test_words_that_never_come_are_waited_for_in_bounded_time(bench):
    """A recogniser that says nothing ends the turn after words_within_s, and that is told."""
    b = bench(settings=FIXED).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(4.9)
    assert b.turns == ["start"]
    b.wait(0.1)
    assert b.turns == ["start", "stop"]
    assert b.decisions[-1] == "complete: words_within_s"


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
    """The likely end is told once, and withdrawn when the caller goes on."""
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
    """Words that change within a pause are told anew."""
    b = bench(settings=FIXED).take(VoiceStarted()).take(VoiceStopped()).take(says("a tee"))
    b.take(says("a tea"))
    assert [e.content for e in b.events(TurnLikelyOver)] == ["a tee", "a tea"]


def test_the_pauses_of_a_caller_are_learned(bench, working):
    """Pauses within a turn, and those taken for an end too early, make the next wait longer."""
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
        {"silent_s": 0.2, "wait_s": 0.0, "score": 0.9},
    )


def test_an_incomplete_turn_waits(bench):
    """A score of 0 waits for the longest pause; a new sound forgets the score."""
    b = bench().take(VoiceStarted()).wait(1.0).take(VoiceStopped()).take(TurnScored(complete=0.0))
    b.take(says("a large latte")).wait(0.99)
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
    assert b.turns == ["start", "stop"]
    b.take(says("are you there", final=False))
    assert b.turns == ["start", "stop", "start"]


def test_a_voice_detector_that_is_stuck(bench):
    """A voice that never stops and never has words is one turn, and then none any more."""
    b = bench(settings=TurnSettings(longest_turn_s=10.0)).take(VoiceStarted()).rest()
    assert b.turns == ["start", "stop"]
    assert b.now_s == 25.0
    b.take(VoiceStopped()).wait(0.2).take(VoiceStarted())
    assert b.turns == ["start", "stop", "start"]


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
    """A voice whose words are final, and of which nothing more comes, counts as stopped."""
    b = bench().take(VoiceStarted()).wait(1.0).take(says("a tea")).wait(9.9)
    assert b.turns == ["start"]
    b.wait(0.1)
    assert b.turns == ["start", "a tea", "stop"]


def test_a_stop_without_a_start_does_nothing(bench):
    """A lone stop is no turn, and the next one is as it should be."""
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
    """Words that were told as they stood, because the final ones did not come, are told once."""
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
    """StartOnWords: no turn before a word; a sound without words is none."""
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
    """StartOnVoice(0.2): the turn begins once the voice has lasted, and a click is none."""
    b = bench(settings=TurnSettings(start=StartOnVoice(0.2)))
    b.take(VoiceStarted()).wait(0.1).take(VoiceStopped()).take(says("")).wait(9.0)
    assert b.turns == []
    b.take(VoiceStarted()).wait(0.19)
    assert b.turns == []
    b.wait(0.01)
    assert b.turns == ["start"]


# --- a speaking agent -----------------------------------------------------------------------------


def test_a_voice_holds_the_speech_at_once(bench, speaking):
    """The agent's speech stands still in the step in which the voice begins; nothing else does."""
    b = bench(speaking).take(VoiceStarted())
    assert b.is_held
    assert b.turns == []
    assert b.decisions == ["held: voice"]


def test_a_voice_that_lasts_interrupts(bench, speaking):
    """After min_duration_s the caller's turn begins, and then the hold is dropped."""
    b = bench(speaking).take(VoiceStarted()).wait(0.49)
    assert b.turns == []
    b.wait(0.01)
    assert b.turns == ["start"]
    assert b.at(UserStartedSpeaking) == b.at(Release) == 0.5
    kinds = [type(getattr(act, "event", act)) for _, act in b.acts]
    assert kinds.index(UserStartedSpeaking) < kinds.index(Release)
    [decided] = [e for e in b.events(TurnDecided) if e.decision == "interruption"]
    assert (decided.about, decided.rule) == ("barge_in", "min_duration_s")
    assert decided.values == {"voiced_s": 0.5, "min_duration_s": 0.5}


def test_an_acknowledgement_changes_nothing(bench, speaking):
    """A short sound lets go after the time-out; its words then say that it was nothing."""
    b = bench(speaking).take(VoiceStarted()).wait(0.1).take(VoiceStopped()).wait(0.1)
    assert b.at(Release) == 0.2
    b.wait(0.3).take(says("Mm-hmm.")).rest()
    assert b.turns == []
    assert b.decisions == [
        "held: voice",
        "silence: false_interruption_timeout_s",
        "acknowledgement: acknowledgements",
    ]
    assert len(b.events(VoiceSettled)) == 1


def test_a_sound_that_held_for_long_lets_go_when_it_stops(bench, speaking):
    """After `longest_hold_s` there is no more to wait for: the gap of a short word stays short."""
    b = bench(speaking).take(VoiceStarted()).wait(0.27).take(VoiceStopped())
    assert b.at(Release) == 0.27
    b = bench(speaking).take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.1)
    assert b.at(Release) == 0.25
    assert b.decisions == ["held: voice", "silence: longest_hold_s"]


def test_a_breath_in_a_sentence_does_not_let_go(bench, speaking):
    """What has lasted for long and stops may go on at once: the time-out is waited for."""
    b = bench(speaking).take(VoiceStarted()).wait(0.45).take(VoiceStopped()).wait(0.08)
    assert b.is_held
    b.take(VoiceStarted()).wait(0.1)
    assert b.turns == ["start"]
    assert b.at(Release) >= 0.5
    b = bench(speaking).take(VoiceStarted()).wait(0.45).take(VoiceStopped()).wait(0.1)
    assert b.at(Release) == pytest.approx(0.55)


def test_words_after_the_release_interrupt_after_all(bench, speaking):
    """The decision stays open until the words are known."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(0.5)
    assert not b.is_held
    b.take(says("stop it"))
    assert b.turns[0] == "start"
    b.wait(2.0)
    assert b.turns == ["start", "stop it", "stop"]
    assert "interruption: interruption_phrases" in b.decisions


def test_a_cough_changes_nothing(bench, speaking):
    """A sound without words is no turn."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(0.4).take(says(""))
    assert b.turns == []
    assert b.decisions[-1] == "noise: words"
    assert b.core.is_quiet


def test_a_cough_of_which_nobody_tells_the_words(bench, speaking):
    """A recogniser that says nothing leaves the sound without a decision for a bounded time."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).rest()
    assert b.now_s == pytest.approx(5.3)
    assert b.turns == []


def test_a_hint_lets_go_at_once(bench, speaking):
    """A sound that seems to be an acknowledgement lets the agent go on while it lasts."""
    b = bench(speaking).take(VoiceStarted()).wait(0.25)
    b.take(VoiceHint(kind="acknowledgement", probability=0.9))
    assert not b.is_held
    b.wait(0.45).take(VoiceStopped()).wait(0.3).take(says("mm-hmm")).rest()
    assert b.turns == []


def test_a_hinted_acknowledgement_that_lasts_longer_still(bench, speaking):
    """It is an interruption when it lasts for acknowledgement_lasts_s."""
    b = bench(speaking).take(VoiceStarted()).wait(0.25)
    b.take(VoiceHint(kind="acknowledgement", probability=0.9)).wait(0.64)
    assert b.turns == []
    b.wait(0.01)
    assert b.at(UserStartedSpeaking) == 0.9


def test_an_unsure_hint_bounds_the_hold(bench, speaking):
    """A sound that is more likely an acknowledgement than not holds for longest_hold_s at most."""
    b = bench(speaking).take(VoiceStarted()).wait(0.1)
    b.take(VoiceHint(kind="acknowledgement", probability=0.6))
    assert b.is_held
    b.wait(0.2)
    assert b.at(Release) == 0.25
    assert b.decisions[-1] == "acknowledgement: longest_hold_s"


def test_a_hint_at_speech_takes_an_earlier_hint_back(bench, speaking):
    """The newest hint counts."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2)
    b.take(VoiceHint(kind="acknowledgement", probability=0.9)).wait(0.1)
    b.take(VoiceHint(kind="speech", probability=0.9)).wait(0.2)
    assert b.at(UserStartedSpeaking) == 0.5


def test_a_hint_at_speech_holds_again(bench, speaking):
    """What let the agent go on was a mistake, and the caller goes on."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2)
    b.take(VoiceHint(kind="acknowledgement", probability=0.9))
    assert not b.is_held
    b.wait(0.1).take(VoiceHint(kind="speech", probability=0.9))
    assert b.is_held


def test_assent_says_nothing_of_what_follows(bench, speaking):
    """What goes on behind a word that sounds like assent interrupts as soon as any voice does."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2)
    b.take(VoiceHint(kind="acknowledgement", probability=0.9)).wait(0.1).take(VoiceStopped())
    b.wait(0.3).take(VoiceStarted()).wait(0.49)
    assert b.turns == []
    assert not b.is_held, "it may be another word of assent"
    b.wait(0.01)
    assert b.at(UserStartedSpeaking) == 1.1


@pytest.mark.parametrize("kind", ["noise", "echo"])
def test_noise_does_not_interrupt_by_lasting(bench, speaking, kind):
    """A sound that seems to be no voice needs words to interrupt."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2)
    b.take(VoiceHint(kind=kind, probability=0.9)).wait(5.0)
    assert not b.is_held
    assert b.turns == []
    b.take(says("could you turn that down", final=False))
    assert b.turns == ["start"]


def test_words_count_over_transcripts(bench, speaking):
    """min_words is reached by transcripts that follow one another."""
    b = bench(speaking, TurnSettings(min_words=3, min_duration_s=None))
    b.take(VoiceStarted()).wait(0.2).take(says("could you", final=False))
    assert b.turns == []
    b.take(says("repeat that", final=False, segment=1))
    assert b.turns == ["start"]
    assert "interruption: min_words" in b.decisions


def test_too_few_words_are_answered_later(bench, speaking, idle):
    """Words that are too few to interrupt are a turn once the agent is done."""
    b = bench(speaking, TurnSettings(min_words=3)).take(VoiceStarted()).wait(0.3)
    b.take(VoiceStopped()).take(says("with milk")).rest()
    assert b.turns == []
    assert b.decisions[-1] == "kept: min_words"
    b.wait(3.0).agent(idle)
    assert b.turns == ["start", "with milk", "stop"]
    assert b.decisions[-1] == "kept_words: min_words"


def test_words_alone_interrupt_where_sound_does_not(bench, speaking):
    """min_duration_s=None: a voice that lasts holds for a moment, and only words interrupt."""
    b = bench(speaking, TurnSettings(min_duration_s=None)).take(VoiceStarted()).wait(3.0)
    assert b.at(Release) == 0.25
    assert b.turns == []
    b.take(says("excuse me"))
    assert b.turns == ["start"]


def test_an_acknowledgement_that_comes_word_by_word(bench, speaking):
    """The "I" of "I see" is not taken for a word; that of "I want" is, when the next one comes."""
    b = bench(speaking).take(VoiceStarted()).take(says("I", final=False))
    b.take(says("I see", final=False)).wait(0.3).take(VoiceStopped()).take(says("I see.")).rest()
    assert b.turns == []
    b.take(VoiceStarted()).take(says("I", final=False))
    assert b.turns == []
    b.take(says("I want", final=False))
    assert b.turns == ["start"]


def test_an_echo_is_no_turn(bench, speaking):
    """Words that the agent is just saying are its own."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(0.2)
    b.take(says("parcel left the ware house on monday")).rest()
    assert b.turns == []
    assert b.decisions[-1] == "echo: echo_similarity"


def test_a_word_of_the_agents_is_no_echo(bench, speaking):
    """Single words are repeated by callers; only a hint makes an echo of them."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).take(says("monday?"))
    assert b.turns == ["start"]
    b = bench(speaking).take(VoiceStarted()).take(VoiceHint(kind="echo", probability=0.8))
    b.wait(0.3).take(VoiceStopped()).take(says("monday")).rest()
    assert b.turns == []


def test_sound_alone_does_not_interrupt_at_first(bench, speaking):
    """Within the warm-up of the echo canceller only words interrupt."""
    b = bench(replace(speaking, first_sound_s=-0.2)).take(VoiceStarted()).wait(0.79)
    assert b.at(Release) == 0.25
    assert b.turns == []
    b.wait(0.01)
    assert b.at(UserStartedSpeaking) == 0.8
    b = bench(replace(speaking, first_sound_s=-0.2)).take(VoiceStarted()).wait(0.6)
    b.take(VoiceStopped()).wait(3.0)
    assert b.turns == [], "what was over by then is not counted later"
    b = bench(replace(speaking, first_sound_s=0.0)).take(VoiceStarted()).take(says("wait"))
    assert b.turns == ["start"]


def test_two_sounds_are_two_decisions_with_one_settlement(bench, speaking):
    """A second sound before the first is decided holds again; both are decided together."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.3)
    assert not b.is_held
    b.take(VoiceStarted())
    assert b.is_held
    b.wait(0.2).take(says("mhm")).take(VoiceStopped()).wait(0.2).take(says("mhm", segment=1)).rest()
    assert b.turns == []
    assert len(b.events(VoiceSettled)) == 1


def test_a_break_that_is_short_is_none(bench, speaking):
    """A voice that goes on within the time-out counts from its beginning, and holds again."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(0.05)
    assert b.at(Release) == 0.3
    b.take(VoiceStarted())
    assert b.is_held
    b.wait(0.15)
    assert b.at(UserStartedSpeaking) == 0.5


def test_speech_is_waited_for_longer(bench, speaking):
    """After "Wait, …" the agent stays silent until the words are known, or the caller goes on."""
    surely = VoiceHint(kind="speech", probability=0.9)
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(surely).take(VoiceStopped())
    b.wait(0.39)
    assert b.is_held
    b.take(VoiceStarted())
    assert b.at(UserStartedSpeaking) == 0.69, "both together last longer than 0.5 s"
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(surely).take(VoiceStopped()).wait(1)
    assert b.at(Release) == 0.7
    assert b.decisions == ["held: voice", "silence: speech_timeout_s"]


def test_an_answer_at_the_end_of_a_question_is_a_turn(bench, speaking, idle):
    """An "okay" that ends as the agent falls silent is an answer, however late its words come."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(0.3).agent(idle)
    assert b.turns == []
    b.wait(1.0).take(says("okay")).wait(1.0)
    assert b.turns == ["start", "okay", "stop"]


def test_an_answer_whose_words_come_first(bench, speaking, idle):
    """The words of an acknowledgement are kept for a moment: the agent may be about to end."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(0.1)
    b.take(says("okay")).wait(0.2)
    assert b.turns == []
    b.agent(idle).wait(2.0)
    assert b.turns == ["start", "okay", "stop"]


def test_an_acknowledgement_long_before_the_end_is_none(bench, speaking, idle):
    """What was over long before the agent fell silent is no answer."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(1.0).agent(idle)
    b.take(says("okay")).rest()
    assert b.turns == []


def test_the_agent_falls_silent_while_the_caller_speaks(bench, speaking, idle):
    """A voice that outlasts the agent's speech begins a turn."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2).agent(idle)
    assert b.turns == ["start"]
    b = bench(speaking).take(VoiceStarted()).take(VoiceHint(kind="echo", probability=0.9))
    b.wait(0.2).agent(idle)
    assert b.turns == [], "an echo has to show words first"


# --- an agent at work -----------------------------------------------------------------------------


def test_stop_while_the_agent_works(bench, working):
    """There is nothing to hold; the word interrupts in the step in which it is known."""
    b = bench(replace(working, state="tool")).take(VoiceStarted()).wait(0.35).take(VoiceStopped())
    b.wait(0.4).take(says("stop"))
    assert b.at(Hold) == float("inf")
    assert b.at(UserStartedSpeaking) == 0.75


def test_an_acknowledgement_while_the_agent_works(bench, working):
    """It does nothing, and no model is called."""
    b = bench(working).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).take(says("okay")).rest()
    assert b.turns == []


@pytest.mark.parametrize("state", ["waiting_permission", "waiting_input"])
def test_an_answer_to_an_agent_that_waits(bench, working, state):
    """An agent that waits for the caller gets its "yes"."""
    b = bench(replace(working, state=state)).take(VoiceStarted()).wait(0.3).take(VoiceStopped())
    b.take(says("yes")).wait(1.0)
    assert b.turns == ["start", "yes", "stop"]
    assert "interruption: awaits_caller" in b.decisions


def test_the_agent_begins_to_speak_into_a_voice(bench, working, speaking):
    """Speech that begins while a voice is undecided is held at its first sound."""
    b = bench(working).take(VoiceStarted()).wait(0.2)
    assert not b.is_held
    b.agent(speaking)
    assert b.is_held


# --- what must not interrupt ----------------------------------------------------------------------


def test_speech_that_may_not_be_cut_is_heard_to_its_end(bench, speaking, idle):
    """Nothing is held, and the caller's words are a turn after it."""
    b = bench(replace(speaking, may_be_cut=False)).take(VoiceStarted()).wait(1.0)
    b.take(VoiceStopped()).take(says("no, not that one")).wait(3.0)
    assert b.at(Hold) == float("inf")
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


def test_kept_words_are_part_of_the_interruption_that_follows(bench, working, speaking):
    """Whoever interrupts later has said it all in one turn."""
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


# --- strategies of one's own ----------------------------------------------------------------------


class Broken:
    """Fails whatever it is asked."""

    look_after_s = None

    def begins(self, sound: Sound) -> bool:
        raise RuntimeError("oops")

    def judge(self, sound: Sound, settings: TurnSettings) -> Verdict:
        raise RuntimeError("oops")

    def wait_s(self, pause: object) -> float:
        raise RuntimeError("oops")


def test_a_strategy_that_fails_is_replaced(bench, speaking):
    """The default decides where a strategy raises, and the log says so."""
    settings = TurnSettings(start=Broken(), barge_in=Broken(), endpointing=Broken())
    b = bench(settings=settings).take(VoiceStarted()).take(VoiceStopped()).take(says("a tea"))
    b.wait(1.0)
    assert b.turns == ["start", "a tea", "stop"]
    b.agent(speaking).take(VoiceStarted()).wait(0.5)
    assert b.turns[3:] == ["start"]


class Never:
    """Never knows, and never ends."""

    def judge(self, sound: Sound, settings: TurnSettings) -> Verdict:
        return Verdict("undecided", final=False)

    def wait_s(self, pause: object) -> float:
        return float("nan")


def test_a_strategy_that_never_decides_loses_nothing(bench, speaking, idle):
    """Words about which nothing was decided are kept; a wait without an end is bounded."""
    settings = TurnSettings(barge_in=Never(), endpointing=Never())
    b = bench(speaking, settings).take(VoiceStarted()).wait(0.3).take(VoiceStopped())
    b.take(says("hello there")).agent(idle)
    assert b.turns == ["start", "hello there", "stop"]
    b.take(VoiceStarted()).take(VoiceStopped()).take(says("a tea")).wait(30.0)
    assert b.turns[3:] == ["start", "a tea", "stop"]


class Deaf:
    """Takes everything for noise, at once."""

    def judge(self, sound: Sound, settings: TurnSettings) -> Verdict:
        return Verdict("noise", "deaf")


def test_a_voice_that_goes_on_after_its_decision(bench, speaking):
    """The stop of a sound that was decided before it ended belongs to that sound."""
    b = bench(speaking, TurnSettings(barge_in=Deaf())).take(VoiceStarted())
    assert b.decisions == ["noise: deaf"]
    b.settings = TurnSettings()
    b.wait(0.2).take(VoiceStopped()).wait(0.2).take(VoiceStarted())
    assert b.is_held


def test_each_decision_shows_what_it_compared(bench, speaking):
    """Every decision names its rule, and never what was said."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(0.2)
    b.take(says("a secret")).wait(2.0)
    for decided in b.events(TurnDecided):
        assert decided.rule
        assert "secret" not in str(decided.values)
    assert [act.words for _, act in b.acts if getattr(act, "words", "")] == ["a secret", "a secret"]


def test_a_model_of_ones_own_bounds(bench):
    """ModelEndpointing(complete_above=): what counts as complete can be set."""
    b = bench(settings=TurnSettings(endpointing=ModelEndpointing(complete_above=0.95)))
    b.take(VoiceStarted()).take(VoiceStopped()).take(TurnScored(complete=0.9)).take(says("a tea"))
    assert b.events(UserStoppedSpeaking) == []
    b.wait(0.3)
    assert b.turns[-1] == "stop"


# --- what is remembered from one sound to the next ------------------------------------------------


def test_a_start_that_comes_after_its_turn_was_decided(bench):
    """The start of a sound whose words and stop have ended a turn begins no other one."""
    b = bench(settings=FIXED).take(says("a tea")).take(VoiceStopped()).wait(0.6)
    assert b.turns == ["start", "a tea", "stop"]
    b.take(VoiceStarted()).wait(2.0)
    assert b.turns == ["start", "a tea", "stop"]
    b.take(VoiceStarted())
    assert b.turns[3:] == ["start"]


def test_a_score_is_one_of_a_pause(bench):
    """What sounded complete does not, once the caller has gone on."""
    b = bench().take(VoiceStarted()).take(VoiceStopped()).take(TurnScored(complete=0.9))
    b.take(VoiceStarted()).wait(0.5).take(VoiceStopped()).take(says("I would like")).wait(0.9)
    assert b.turns == ["start"]


def test_a_score_of_a_doubt_is_that_of_its_turn(bench, speaking):
    """A model that is faster than the recogniser is not asked twice."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped())
    b.take(TurnScored(complete=0.9)).take(says("stop"))
    assert b.turns == ["start", "stop", "stop"]


def test_why_words_are_kept_is_forgotten_with_them(bench, working, speaking, idle):
    """Words that had to wait for the end of the work do not make later ones wait for it."""
    b = bench(replace(working, state="tool"), TurnSettings(mute=("tool",)))
    b.take(VoiceStarted()).take(VoiceStopped()).take(says("not that")).agent(idle)
    assert b.turns == ["start", "not that", "stop"]
    b.agent(replace(speaking, may_be_cut=False)).take(VoiceStarted()).take(VoiceStopped())
    b.take(says("this one")).agent(speaking)
    assert b.turns[3:] == ["start", "this one", "stop"]


def test_a_verdict_on_a_voice_that_is_held(bench, speaking):
    """A hold ends with the doubt that it was for."""
    b = bench(speaking).take(VoiceStarted())
    b.settings = TurnSettings(barge_in=Deaf())
    b.wait(0.1).take(VoiceHint(kind="speech", probability=0.1))
    assert b.core.is_quiet
    assert not b.is_held


def test_a_stop_that_never_comes_while_the_agent_speaks(bench, speaking):
    """An acknowledgement whose words are final is decided though its voice never stops."""
    b = bench(speaking, TurnSettings(min_duration_s=None)).take(VoiceStarted())
    b.take(says("mhm")).wait(9.9)
    assert not b.core.is_quiet
    b.wait(0.7)
    assert b.core.is_quiet
    assert b.turns == []
