"""What the default strategy makes of a sound, rule by rule."""

from __future__ import annotations

import math

import pytest

from bargein.user_turns import AgentView, Hint, TurnSettings

from .verdicts import judged, over


@pytest.mark.parametrize(
    ("known", "decision", "rule", "final"),
    [
        ({"voiced_s": 0.49}, "undecided", "", False),
        ({"voiced_s": 0.5}, "interruption", "min_duration_s", True),
        ({"is_voiced": False, "silent_s": 0.14}, "undecided", "", False),
        (
            {"is_voiced": False, "silent_s": 0.15},
            "silence",
            "false_interruption_timeout_s",
            False,
        ),
        (
            {"is_voiced": False, "silent_s": 0.59, "held_s": 0.8, "hint": Hint("speech", 0.9)},
            "undecided",
            "",
            False,
        ),
        (
            {"is_voiced": False, "silent_s": 0.6, "hint": Hint("speech", 0.9)},
            "silence",
            "speech_timeout_s",
            False,
        ),
        (
            {"is_voiced": False, "silent_s": 0.15, "hint": Hint("speech", 0.89)},
            "silence",
            "false_interruption_timeout_s",
            False,
        ),
        ({"text": "could"}, "interruption", "min_words", True),
        ({"text": "okay"}, "acknowledgement", "acknowledgements", False),
        ({"text": "okay", "voiced_s": 0.49}, "acknowledgement", "acknowledgements", False),
        (
            {"text": "okay", "voiced_s": 0.8, "hint": Hint("acknowledgement", 0.9)},
            "acknowledgement",
            "acknowledgements",
            False,
        ),
        ({"text": "okay", "voiced_s": 0.9}, "interruption", "acknowledgement_lasts_s", True),
        ({"text": "okay stop"}, "interruption", "interruption_phrases", True),
        ({"text": "parcel left the warehouse"}, "echo", "echo_similarity", False),
        (
            {"text": "parcel left the warehouse", "voiced_s": 5.0},
            "echo",
            "echo_similarity",
            False,
        ),
        ({"hint": Hint("noise", 0.8)}, "noise", "hint", False),
        ({"hint": Hint("noise", 0.6)}, "undecided", "", False),
        ({"hint": Hint("noise", 0.8), "voiced_s": 5.0}, "noise", "hint", False),
        ({"hint": Hint("echo", 0.8), "voiced_s": 5.0}, "echo", "hint", False),
        ({"hint": Hint("speech", 0.9)}, "undecided", "", False),
        ({"hint": Hint("acknowledgement", 0.9)}, "acknowledgement", "hint", False),
        ({"hint": Hint("acknowledgement", 0.89), "held_s": 0.4}, "undecided", "", False),
        (
            {"hint": Hint("acknowledgement", 0.7), "voiced_s": 0.9},
            "interruption",
            "acknowledgement_lasts_s",
            True,
        ),
        (
            {"hint": Hint("acknowledgement", 0.9), "held_s": 0.3, "voiced_s": 0.3},
            "acknowledgement",
            "hint",
            False,
        ),
        ({"hint": Hint("noise", 0.9), "text": "excuse me"}, "interruption", None, True),
    ],
)
def test_the_first_rule_that_knows_decides(known, decision, rule, final):
    """Each rule decides what it knows, and names itself."""
    verdict = judged(**known)
    assert (verdict.decision, verdict.final) == (decision, final)
    assert rule in (None, verdict.rule)


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("mhm", "acknowledgement"),
        ("left the warehouse on monday", "echo"),
        ("", "noise"),
        ("no thanks", "interruption"),
    ],
)
def test_a_sound_that_is_over_is_decided(text, decision):
    """With its words known nothing is left open."""
    verdict = over(text)
    assert (verdict.decision, verdict.final) == (decision, True)


def test_a_long_timeout_is_no_shorter_for_speech():
    """With a one-second wait for any sound, the wait for sure speech is as long."""
    patient = TurnSettings(false_interruption_timeout_s=1.0)
    stopped = {"is_voiced": False, "held_s": 1.5, "hint": Hint("speech", 0.95)}
    assert judged(patient, silent_s=0.5, **stopped).decision == "undecided"
    assert judged(patient, silent_s=0.5, **stopped).ask_in_s == pytest.approx(0.5)
    assert judged(patient, silent_s=1.0, **stopped).rule == "false_interruption_timeout_s"


@pytest.mark.parametrize(
    ("known", "limit_s", "rule"),
    [
        ({}, 0.8, "min_duration_s"),
        ({"hint": Hint("speech", 0.9)}, 0.8, "min_duration_s"),
        ({"hint": Hint("acknowledgement", 0.7)}, 0.9, "acknowledgement_lasts_s"),
    ],
)
def test_a_voice_that_lasts_interrupts(known, limit_s, rule):
    """A laugh lasts for half a second, too; the rule names the setting that counted."""
    before = judged(TurnSettings(), voiced_s=limit_s - 0.01, **known)
    assert before.decision != "interruption"
    assert before.ask_in_s == pytest.approx(0.01)
    verdict = judged(TurnSettings(), voiced_s=limit_s, **known)
    assert (verdict.decision, verdict.rule) == ("interruption", rule)
    assert verdict.values == {"voiced_s": limit_s, rule: limit_s}


@pytest.mark.parametrize("words_are_old", [False, True])
@pytest.mark.parametrize(("confidence", "interrupts"), [(0.39, False), (0.4, True)])
def test_a_sound_in_which_nobody_spoke_does_not_interrupt_by_lasting(
    words_are_old, confidence, interrupts
):
    """Nor does it after a gap: throats are cleared several times, and words are still to come."""
    known = {"text": "I'm so sorry.", "confidence": confidence, "words_are_old": words_are_old}
    verdict = judged(TurnSettings(), voiced_s=0.8, **known)
    assert (verdict.rule == "min_duration_s") is interrupts


def test_sure_words_do_not_wait_for_a_duration():
    """Known words interrupt at once, and the decision has their confidence."""
    verdict = judged(TurnSettings(), text="a tea please", confidence=0.8, voiced_s=0.3)
    assert (verdict.decision, verdict.rule) == ("interruption", "min_words")
    assert verdict.values == {"words": 3, "min_words": 1, "confidence": 0.8}


def test_an_acknowledgement_lasts_no_less_than_any_voice():
    """A minimum duration of two seconds applies to acknowledgements too."""
    settings, hint = TurnSettings(min_duration_s=2.0), Hint("acknowledgement", 0.9)
    assert judged(settings, voiced_s=1.99, hint=hint).decision == "acknowledgement"
    assert judged(settings, voiced_s=2.0, hint=hint).rule == "min_duration_s"


def test_words_are_no_noise():
    """A hint at noise does not count once there are words, however few."""
    settings = TurnSettings(min_words=3, min_duration_s=0.5)
    assert judged(settings, hint=Hint("noise", 0.9), text="with milk").decision == "undecided"
    last = judged(settings, hint=Hint("noise", 0.9), text="with milk", voiced_s=0.5)
    assert last.rule == "min_duration_s"


@pytest.mark.parametrize(
    ("text", "confidence", "decision", "rule"),
    [
        ("", None, "noise", "hint"),
        ("Mm-hmm.", 0.9, "acknowledgement", "acknowledgements"),
        ("Catch.", 0.79, "noise", "min_confidence"),
        ("Catch.", 0.8, "interruption", "min_words"),
        ("Two.", 0.55, "interruption", "min_words"),
        ("Stop!", 0.5, "interruption", "interruption_phrases"),
        ("I want another one", 0.6, "interruption", "min_words"),
    ],
)
@pytest.mark.parametrize("probability", [0.5, 0.7])
def test_few_words_of_what_sounds_like_a_cough_have_to_be_sure(
    text, confidence, decision, rule, probability
):
    """The sound decides how long it has to last; words that are sure win, and so does "stop"."""
    hint = Hint("noise", probability)
    known = {"hint": hint, "text": text, "confidence": confidence}
    if text:
        verdict = over(settings=TurnSettings(), voiced_s=0.5, **known)
        assert (verdict.decision, verdict.rule) == (decision, rule)
    elif probability >= 0.7:
        verdict = judged(TurnSettings(), voiced_s=0.5, **known)
        assert (verdict.decision, verdict.rule) == (decision, rule)
    lasting = judged(TurnSettings(), voiced_s=0.8, **known)
    assert (lasting.rule == "min_duration_s") is (probability < 0.7 and decision == "noise")


@pytest.mark.parametrize(
    ("text", "decision"),
    [("Watch it.", "noise"), ("Two.", "interruption"), ("I want a tea.", "interruption")],
)
def test_few_words_of_what_is_certainly_a_sneeze_are_none(text, decision):
    """However sure the recogniser is; numbers and sentences of which it is sure interrupt."""
    hint = Hint("noise", 0.9)
    assert over(text, hint=hint, voiced_s=0.5, confidence=0.95).decision == decision
    assert over(text, hint=hint, voiced_s=0.5, confidence=0.79).decision == "noise"


@pytest.mark.parametrize(("confidence", "decision"), [(0.79, "noise"), (0.8, "interruption")])
def test_a_single_consonant_has_to_be_sure(confidence, decision):
    """Of a throat that is cleared Whisper makes "M" or "f", and of an "eight" it makes "A"; a
    letter of Russian may be a word, as a character of Chinese is."""
    assert over("M", confidence=confidence, voiced_s=0.3).decision == decision
    for text in ("2", "A", "\u042f", "\u6211"):
        assert over(text, confidence=confidence, voiced_s=0.3).decision == "interruption"


@pytest.mark.parametrize(
    ("text", "decision"),
    [
        ("Thank you.", "acknowledgement"),
        ("Okay, thanks.", "acknowledgement"),
        ("No, thank you.", "interruption"),
        ("Thank you, bye.", "interruption"),
    ],
)
def test_thanks_over_the_agent_is_an_acknowledgement(text, decision):
    """Whisper makes it of coughs, and who says it and no more lets the agent go on."""
    assert over(text, confidence=0.95, voiced_s=0.5).decision == decision


@pytest.mark.parametrize(("probability", "decision"), [(0.69, "interruption"), (0.7, "noise")])
def test_several_words_have_to_be_sure_only_if_the_sound_is_surely_none(probability, decision):
    """Of a sound that only seems a cough, "but it's" is enough words."""
    hint = Hint("noise", probability)
    verdict = judged(TurnSettings(), hint=hint, text="But it's", confidence=0.79, voiced_s=0.5)
    assert verdict.decision == decision


@pytest.mark.parametrize(
    ("probability", "voiced_s", "decision"),
    [(0.7, 0.6, "noise"), (0.7, 0.63, "interruption"), (0.69, 0.6, "interruption")],
)
def test_words_that_nobody_says_so_fast_have_to_be_sure_if_the_sound_is_none(
    probability, voiced_s, decision
):
    """Of a throat that is cleared Whisper makes a sentence: eight words a second are the limit."""
    hint = Hint("noise", probability)
    verdict = over("It's not a good idea.", hint=hint, voiced_s=voiced_s, confidence=0.79)
    assert verdict.decision == decision


def test_too_few_words():
    """Fewer than min_words neither interrupt nor are nothing."""
    settings = TurnSettings(min_words=3)
    assert over("with milk", settings=settings).decision == "too_few_words"
    assert judged(settings, text="with milk").decision == "undecided"
    assert over("with oat milk", settings=settings).decision == "interruption"
    assert over("加燕麦奶", settings=settings).decision == "interruption"


@pytest.mark.parametrize(
    ("known", "ask_in_s"),
    [
        ({"voiced_s": 0.2}, 0.3),
        ({"voiced_s": 0.4, "held_s": 0.4, "hint": Hint("acknowledgement", 0.9)}, 0.5),
        ({"voiced_s": 0.2, "held_s": 0.2, "hint": Hint("acknowledgement", 0.6)}, 0.7),
        ({"voiced_s": 0.2, "is_voiced": False, "silent_s": 0.04}, 0.11),
        ({"is_voiced": False, "silent_s": 0.04, "hint": Hint("speech", 0.9)}, 0.56),
        ({"voiced_s": 0.2, "hint": Hint("noise", 0.9), "held_s": 0.3}, math.inf),
    ],
)
def test_it_says_when_to_ask_again(known, ask_in_s):
    """What is undecided names the next time that matters."""
    assert judged(**known).ask_in_s == pytest.approx(ask_in_s)


def test_the_warm_up_moves_the_time_that_matters():
    """Within it, sound alone is looked at again when it is over."""
    early = AgentView(is_audible=True, is_at_work=True, first_sound_s=9.5)
    verdict = judged(agent=early, voiced_s=0.6, held_s=0.1)
    assert verdict.decision == "undecided"
    assert verdict.ask_in_s == pytest.approx(0.15), "a hold is a short one meanwhile"
    assert judged(agent=early, voiced_s=0.6, held_s=0.4).rule == "longest_hold_s"
    assert judged(agent=early, voiced_s=0.6, held_s=0.4).ask_in_s == pytest.approx(0.5)
    none = AgentView(is_at_work=True)
    assert judged(agent=none, voiced_s=0.6).decision == "interruption", "nothing was heard yet"
