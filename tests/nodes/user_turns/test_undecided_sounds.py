"""What becomes of a sound while the agent speaks or works, without a call."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bargein.events import (
    TurnDecided,
    UserStartedSpeaking,
    VoiceHint,
    VoiceSettled,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)
from bargein.nodes.user_turns._turn_taking_state import HoldSpeech, ReleaseSpeech
from bargein.user_turns import TurnSettings

from .conftest import says

# --- a speaking agent -----------------------------------------------------------------------------


def test_a_voice_holds_the_speech_at_once(bench, speaking):
    """The start of a voice holds the agent's speech in the same step, and does nothing else."""
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
    assert b.at(UserStartedSpeaking) == b.at(ReleaseSpeech) == 0.5
    kinds = [type(getattr(act, "event", act)) for _, act in b.acts]
    assert kinds.index(UserStartedSpeaking) < kinds.index(ReleaseSpeech)
    [decided] = [e for e in b.events(TurnDecided) if e.decision == "interruption"]
    assert (decided.about, decided.rule) == ("barge_in", "min_duration_s")
    assert decided.values == {"voiced_s": 0.5, "min_duration_s": 0.5}


@pytest.mark.parametrize("least_s", [None, 0.8])
@pytest.mark.parametrize("text", ["V-", "I..."])
def test_a_word_whose_rest_never_comes_does_not_hold_the_speech(bench, speaking, text, least_s):
    """A voice that goes on after a part of a word holds for 1.8 s; its words still interrupt."""
    b = bench(speaking, TurnSettings(min_duration_s=least_s)).take(VoiceStarted()).wait(0.2)
    b.take(says(text, final=False)).wait(1.5)
    assert b.is_held
    b.wait(0.2)
    assert not b.is_held
    b.wait(5.0).take(says("I should like a tea", final=False))
    assert b.turns == ["start"]


def test_an_acknowledgement_may_be_an_answer_for_longer_than_words_are_awaited(bench, speaking):
    """Whether it is an answer is then asked once more, at the end of that time, and not at once."""
    b = bench(speaking, TurnSettings(answer_within_s=2.0, words_within_s=1.0))
    b.take(VoiceStarted()).wait(0.2).take(VoiceStopped()).take(says("mhm")).wait(1.5)
    assert b.core.ask_by_s == pytest.approx(2.2)
    b.wait(1.0)
    assert b.decisions[-1] == "acknowledgement: acknowledgements"
    assert b.core.is_quiet
    assert not b.is_held


def test_an_acknowledgement_changes_nothing(bench, speaking):
    """A short sound lets go after the time-out; its words then say that it was nothing."""
    b = bench(speaking).take(VoiceStarted()).wait(0.1).take(VoiceStopped()).wait(0.15)
    assert b.at(ReleaseSpeech) == 0.25
    b.wait(0.25).take(says("Mm-hmm.")).rest()
    assert b.turns == []
    assert b.decisions == [
        "held: voice",
        "silence: false_interruption_timeout_s",
        "acknowledgement: acknowledgements",
    ]
    assert len(b.events(VoiceSettled)) == 1


def test_a_gap_behind_the_first_syllable_is_no_end(bench, speaking):
    """Where a voice stops late in the hold, its silence decides, as in any other: it may go on."""
    b = bench(speaking).take(VoiceStarted()).wait(0.27).take(VoiceStopped()).wait(0.09)
    assert b.is_held
    b.take(VoiceStarted()).wait(0.5)
    assert b.at(UserStartedSpeaking) == 0.5
    b = bench(speaking).take(VoiceStarted()).wait(0.27).take(VoiceStopped()).wait(0.15)
    assert b.at(ReleaseSpeech) == 0.42
    assert b.decisions == ["held: voice", "silence: false_interruption_timeout_s"]


def test_words_in_a_gap_hold_the_agent_for_what_follows(bench, speaking):
    """A caller may breathe after a meant word, as in "But, the thing is"."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.1)
    b.take(VoiceWords(content="But", confidence=0.9, final=False, tentative=True)).wait(0.3)
    assert b.is_held
    assert b.turns == [], "the words that come with the silence behind them decide"
    b.take(VoiceWords(content="But", confidence=0.9))
    assert b.at(UserStartedSpeaking) == 0.6


def test_a_noise_in_a_gap_lets_go_at_once_and_what_follows_holds_again(bench, speaking):
    """Words from before a gap say nothing about the sound after it."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.1)
    b.take(VoiceWords(content="Ha ha", confidence=0.9, final=False, tentative=True))
    assert b.at(ReleaseSpeech) == 0.3
    b.take(VoiceStarted()).wait(0.2)
    assert b.is_held
    assert b.decisions == ["held: voice", "silence: noises", "held: voice"]


def test_a_word_that_breaks_off_in_a_gap_is_no_sneeze_yet(bench, speaking):
    """With the silence behind it the recogniser may be surer that it is the "But" of a sentence."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.1)
    b.take(VoiceWords(content="But...", confidence=0.75, final=False, tentative=True)).wait(0.2)
    assert b.is_held
    b.take(VoiceWords(content="But", confidence=0.8))
    assert b.turns == ["start"]
    assert b.at(ReleaseSpeech) == 0.5


@pytest.mark.parametrize(("confidence", "resumes_s"), [(0.45, 1.05), (0.3, 0.4)])
def test_unsure_words_before_a_gap_do_not_end_the_hold(bench, speaking, confidence, resumes_s):
    """Of half a sentence in noise the recogniser is unsure: the silence behind it decides, unless
    it seems that nobody spoke."""
    b = bench(speaking).take(VoiceStarted()).wait(0.4)
    b.take(VoiceWords(content="But she", confidence=confidence, final=False)).wait(0.05)
    b.take(VoiceStopped()).wait(0.7)
    assert b.at(ReleaseSpeech) == pytest.approx(resumes_s)


def test_words_in_a_gap_count_if_no_others_come(bench, speaking):
    """A recogniser that fails on the whole sound must not cost the words that it told early."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.1)
    b.take(VoiceWords(content="Two", confidence=0.9, final=False, tentative=True)).wait(0.1)
    b.take(VoiceWords(content="", error="ConnectionError"))
    assert b.turns == ["start"]


def test_the_bursts_of_a_throat_do_not_add_up(bench, speaking):
    """A gap of 0.1 s is too short to let go, but what follows does not last since the first one."""
    b = bench(speaking)
    for _ in range(4):
        b.take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.1)
    assert b.turns == []


def test_a_word_that_breaks_off_holds_the_agent_for_a_breath(bench, speaking):
    """Recognisers write so what goes on, and a sneeze, which does not."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.1)
    b.take(VoiceWords(content="Well...", confidence=0.9)).wait(0.4)
    assert b.is_held
    b.wait(0.1)
    assert b.at(ReleaseSpeech) == 0.8
    assert b.decisions == ["held: voice", "noise: noises"]


def test_a_breath_in_a_sentence_does_not_let_go(bench, speaking):
    """What has lasted for long and stops may go on at once: the time-out is waited for."""
    b = bench(speaking).take(VoiceStarted()).wait(0.45).take(VoiceStopped()).wait(0.08)
    assert b.is_held
    b.take(VoiceStarted()).wait(0.1)
    assert b.turns == ["start"]
    assert b.at(ReleaseSpeech) >= 0.5
    b = bench(speaking).take(VoiceStarted()).wait(0.45).take(VoiceStopped()).wait(0.7)
    assert b.at(ReleaseSpeech) == pytest.approx(1.05)
    assert b.decisions == ["held: voice", "silence: speech_timeout_s"]


@pytest.mark.parametrize("hint", [None, VoiceHint(kind="speech", probability=0.95)])
@pytest.mark.parametrize("pause_s", [0.37, 0.43, 0.5])
def test_a_breath_of_04_s_is_no_end(bench, speaking, hint, pause_s):
    """A caller who breathes for 0.4 s after "No wait, …" is not talked over."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2)
    if hint is not None:
        b.take(hint)
    b.wait(0.24).take(VoiceStopped()).wait(pause_s).take(VoiceStarted()).wait(0.1)
    assert b.turns == ["start"]
    assert b.decisions == ["held: voice", "interruption: min_duration_s"]


@pytest.mark.parametrize("kind", ["acknowledgement", "noise", "echo"])
def test_a_longer_sound_that_seems_no_speech_is_not_waited_for(bench, speaking, kind):
    """A long "mm-hmm", a noise and an echo let the agent go on as soon as shorter ones."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2)
    b.take(VoiceHint(kind=kind, probability=0.6)).wait(0.24).take(VoiceStopped()).wait(1)
    assert b.at(ReleaseSpeech) <= 0.6


def test_words_end_the_wait(bench, speaking):
    """Once a cough of some length turns out to be one, the agent goes on."""
    b = bench(speaking).take(VoiceStarted()).wait(0.45).take(VoiceStopped()).wait(0.35)
    b.take(says(""))
    assert b.at(ReleaseSpeech) == pytest.approx(0.8)


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
    """A recogniser that returns nothing leaves the sound undecided for a bounded time.

    No turn comes of it; that words may be lost is told.
    """
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).rest()
    assert b.now_s == pytest.approx(5.3)
    assert b.turns == ["timed_out"]


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


@pytest.mark.parametrize(("probability", "resumes_s"), [(0.89, 0.5), (0.9, 0.26)])
def test_an_unsure_hint_does_not_end_the_hold(bench, speaking, probability, resumes_s):
    """Some beginnings of sentences sound like a backchannel: only a sure hint counts at once."""
    b = bench(speaking).take(VoiceStarted()).wait(0.26)
    b.take(VoiceHint(kind="acknowledgement", probability=probability)).wait(0.09)
    b.take(VoiceStopped()).wait(0.2)
    assert b.at(ReleaseSpeech) == pytest.approx(resumes_s)
    assert b.turns == []


def test_a_scrap_of_a_backchannel_in_a_gap_does_not_end_the_hold(bench, speaking):
    """Of the "I" of "I should" a network is unsure, and a closure follows: it counts no more."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2).take(VoiceStopped()).wait(0.04)
    b.take(VoiceHint(kind="acknowledgement", probability=0.83))
    b.take(VoiceWords(content="I", confidence=0.7, final=False, tentative=True)).wait(0.06)
    assert b.is_held
    b.wait(0.2).take(VoiceWords(content="I", confidence=0.7))
    assert b.at(ReleaseSpeech) == pytest.approx(0.5)
    assert b.decisions[-1] == "acknowledgement: misheard_words"


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


def test_a_backchannel_says_nothing_of_what_follows(bench, speaking):
    """A voice after a word that sounds like a backchannel interrupts as soon as any voice."""
    b = bench(speaking).take(VoiceStarted()).wait(0.2)
    b.take(VoiceHint(kind="acknowledgement", probability=0.9)).wait(0.1).take(VoiceStopped())
    b.wait(0.3).take(VoiceStarted()).wait(0.49)
    assert b.turns == []
    assert not b.is_held, "it may be another acknowledgement"
    b.wait(0.01)
    assert b.at(UserStartedSpeaking) == 1.1


@pytest.mark.parametrize(
    ("probability", "text", "confidence", "turns"),
    [
        (0.9, "I'm so sorry.", 0.6, []),
        (0.9, "I'm so sorry.", 0.8, ["start"]),
        (0.9, "I want a tea.", 0.6, ["start"]),
        (0.89, "I'm so sorry.", 0.6, ["start"]),
    ],
)
def test_coughs_come_in_bursts(bench, speaking, probability, text, confidence, turns):
    """What follows a certain cough at once does not hold the agent, and few words must be sure."""
    b = bench(speaking).take(VoiceStarted()).wait(0.1)
    b.take(VoiceHint(kind="noise", probability=probability)).take(VoiceStopped())
    b.wait(0.2).take(VoiceStarted()).wait(0.45)
    assert b.is_held is (probability < 0.9)
    b.take(VoiceStopped()).wait(0.1).take(VoiceWords(content=text, confidence=confidence))
    assert b.turns[:1] == turns


def test_speech_after_a_certain_cough_holds_again(bench, speaking):
    """The hint at what follows counts more than the one at the cough."""
    b = bench(speaking).take(VoiceStarted()).wait(0.1)
    b.take(VoiceHint(kind="noise", probability=0.99)).take(VoiceStopped())
    b.wait(0.2).take(VoiceStarted()).wait(0.1)
    assert not b.is_held
    b.take(VoiceHint(kind="speech", probability=0.95))
    assert b.is_held


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
    assert b.at(ReleaseSpeech) == 0.25
    assert b.turns == []
    b.take(says("excuse me"))
    assert b.turns == ["start"]


def test_an_acknowledgement_that_comes_word_by_word(bench, speaking):
    """The "I" of "I see" is not a word yet; that of "I want" is, once the next word comes."""
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
    assert b.at(ReleaseSpeech) == 0.25
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
    """A voice that goes on within the time-out counts from its beginning."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(VoiceStopped()).wait(0.05)
    b.take(VoiceStarted())
    assert b.is_held
    b.wait(0.15)
    assert b.at(UserStartedSpeaking) == 0.5


def test_speech_is_waited_for_longer(bench, speaking):
    """After "Wait, …" the agent stays silent until the words are known, or the caller goes on."""
    surely = VoiceHint(kind="speech", probability=0.9)
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(surely).take(VoiceStopped())
    b.wait(0.59)
    assert b.is_held
    b.take(VoiceStarted())
    assert b.at(UserStartedSpeaking) == 0.89, "both together last longer than 0.5 s"
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(surely).take(VoiceStopped()).wait(1)
    assert b.at(ReleaseSpeech) == 0.9
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
    """A sound that ended long before the agent fell silent is not an answer."""
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
    assert b.at(HoldSpeech) == float("inf")
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
