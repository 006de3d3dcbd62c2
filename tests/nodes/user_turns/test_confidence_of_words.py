"""How sure a recogniser has to be of its words for them to interrupt."""

from __future__ import annotations

import pytest

from bargein.user_turns import Hint, TurnSettings

from .verdicts import judged, over


@pytest.mark.parametrize(
    ("text", "probability", "voiced_s", "decision"),
    [
        ("Emma.", 0.95, 0.6, "acknowledgement"),
        ("And Amazon.", 0.9, 0.6, "acknowledgement"),
        ("Emma.", 0.8, 0.6, "interruption"),
        ("Ah-hop.", 0.75, 0.3, "interruption"),
        ("Hup.", 0.75, 0.3, "acknowledgement"),
        ("Hup.", 0.65, 0.3, "interruption"),
        ("Stop.", 0.75, 0.3, "interruption"),
        ("Emma.", 0.95, 1.0, "interruption"),
        ("I want a tea.", 0.95, 0.6, "interruption"),
        ("I want to go to the next one.", 0.95, 0.6, "acknowledgement"),
        ("I want to go to the next one.", 0.75, 0.6, "acknowledgement"),
        ("I want to go to the next one.", 0.75, 0.7, "interruption"),
        ("Stop.", 0.99, 0.4, "interruption"),
    ],
)
def test_a_hum_is_no_name(text, probability, voiced_s, decision):
    """What a recogniser makes of a sure, short hum does not interrupt; "stop" always does."""
    hint = Hint("acknowledgement", probability)
    assert over(text, hint=hint, voiced_s=voiced_s).decision == decision


@pytest.mark.parametrize(
    ("text", "confidence", "decision"),
    [
        ("Two.", 0.6, "interruption"),
        ("4 4", 0.6, "interruption"),
        ("No.", None, "interruption"),
        ("Latte.", 0.8, "interruption"),
        ("Them.", 0.73, "acknowledgement"),
        ("Emma.", None, "acknowledgement"),
        ("Okay.", 0.99, "acknowledgement"),
    ],
)
def test_a_sure_word_outweighs_the_sound_of_a_backchannel(text, confidence, decision):
    """A digit is as short as a hum; of hums recognisers make no numbers, and nothing surely."""
    hint = Hint("acknowledgement", 0.95)
    verdict = over(text, hint=hint, voiced_s=0.3, confidence=confidence)
    assert verdict.decision == decision


@pytest.mark.parametrize(
    ("text", "decision"),
    [("Oh, Huck.", "acknowledgement"), ("Two.", "interruption"), ("Stop.", "interruption")],
)
def test_what_is_certainly_a_backchannel_outweighs_sure_words(text, decision):
    """Of an "uh-huh" recognisers make two words surely; numbers and "stop" still count."""
    hint = Hint("acknowledgement", 0.97)
    assert over(text, hint=hint, voiced_s=0.3, confidence=0.86).decision == decision


def test_a_sure_word_of_an_echo_is_the_agents():
    """A sound like the agent's own voice is not an answer, however well it is heard."""
    hint = Hint("echo", 0.98)
    assert over("Two.", hint=hint, voiced_s=0.3, confidence=0.9).decision == "echo"


@pytest.mark.parametrize("text", ["Ha ha ha ha.", "Hahahaha", "Ugh.", "Oh, ha ha", "C-", "Ssss"])
def test_what_recognisers_write_for_a_laugh_is_noise(text):
    """It interrupts nothing, however sure they are and however long it lasts; words do."""
    verdict = over(text, confidence=0.88, voiced_s=0.4, silent_s=0.6)
    assert (verdict.decision, verdict.rule, verdict.final) == ("noise", "noises", True)
    lasting = judged(text=text, voiced_s=2.0)
    assert (lasting.decision, lasting.rule, lasting.final) == ("noise", "noises", False)
    assert judged(text=f"{text} No wait", voiced_s=2.0).decision == "interruption"


@pytest.mark.parametrize("text", ["I...", "V-", "O-P-", "So\u2026"])
def test_words_that_break_off_in_a_voice_that_goes_on_say_nothing(text):
    """A recogniser that hears only the beginning of a sentence writes the same as of a cough."""
    for known in ({"voiced_s": 0.45}, {"is_voiced": False, "silent_s": 0.1, "voiced_s": 0.3}):
        verdict = judged(text=text, confidence=0.83, held_s=0.5, **known)
        assert (verdict.decision, verdict.rule) == ("undecided", "")
    over_s = {"is_voiced": False, "silent_s": 0.15, "voiced_s": 0.4}
    assert judged(text=text, confidence=0.75, **over_s).rule == "noises"
    lasting = judged(text=text, confidence=0.83, hint=Hint("speech", 0.9), voiced_s=0.5)
    assert (lasting.decision, lasting.rule) == ("interruption", "min_duration_s")


def test_a_cough_behind_words_says_nothing_about_them():
    """The "sh" of "I should" sounds like one; a hint from before the words does count."""
    heard = {"text": "I", "confidence": 0.74, "words_tentative": True, "words_are_old": True}
    known = {**heard, "hint": Hint("noise", 0.76), "voiced_s": 0.1, "held_s": 0.5}
    assert judged(**known).decision == "undecided"
    assert judged(**known, hint_is_old=True).rule == "longest_hold_s"


def test_an_acknowledgement_that_goes_on_waits_for_more_words():
    """Of "I asked" a recogniser hears "Uh" first; the sound decides, or the silence behind it."""
    heard = {"text": "Uh", "confidence": 0.7, "hint": Hint("acknowledgement", 0.87)}
    assert judged(voiced_s=0.5, **heard).decision == "undecided"
    just_over = judged(voiced_s=0.6, is_voiced=False, silent_s=0.14, **heard)
    assert (just_over.decision, just_over.ask_in_s) == ("undecided", pytest.approx(0.01))
    quiet = judged(voiced_s=0.6, is_voiced=False, silent_s=0.15, **heard)
    assert quiet.decision == "acknowledgement"
    sneeze = {"hint": Hint("noise", 0.5)}
    for sure in ({"hint": Hint("acknowledgement", 0.9)}, {"confidence": 0.64}, sneeze):
        assert judged(voiced_s=0.5, settings=TurnSettings(), **(heard | sure)).rule == (
            "acknowledgements"
        )


@pytest.mark.parametrize("text", ["But...", "It's...", "So\u2026"])
def test_a_single_word_that_breaks_off_is_noise(text):
    """Such a transcript is a sneeze, unless it is a number or the sound is longer."""
    verdict = over(text, confidence=0.79, voiced_s=0.5)
    assert (verdict.decision, verdict.rule) == ("noise", "noises")
    assert over(text, confidence=0.9, voiced_s=0.9).decision == "interruption"
    assert over("Two...", confidence=0.9, voiced_s=0.5).decision == "interruption"
    assert over("But I...", confidence=0.9, voiced_s=0.5).decision == "interruption"


@pytest.mark.parametrize(
    ("text", "hint", "rule"),
    [
        ("Catch!", None, "noises"),
        ("Bye, Joe!", Hint("noise", 0.4), "noises"),
        ("Catch!", Hint("speech", 0.9), "min_words"),
        ("Stop!", None, "interruption_phrases"),
        ("No!", None, "min_words"),
        ("That is not what I meant!", None, "min_words"),
        ("I took...", Hint("noise", 0.5), "noises"),
        ("I took...", None, "min_words"),
    ],
)
def test_a_burst_is_written_as_a_few_exclaimed_or_unfinished_words(text, hint, rule):
    """Such a transcript is a sneeze, unless the sound is surely speech."""
    known = {"text": text, "hint": hint, "confidence": 0.79}
    assert over(settings=TurnSettings(), voiced_s=0.5, **known).rule == rule


@pytest.mark.parametrize("confidence", [0.8, None])
def test_an_exclaimed_greeting_interrupts(confidence):
    """A recogniser is sure of it, or does not say how sure it is."""
    assert over("Hello!", confidence=confidence, voiced_s=0.5).decision == "interruption"


def test_an_exclaimed_word_of_the_hint_interrupts():
    """Whisper is sure without the hint that somebody spoke."""
    known = {"confidence": 0.9, "unhinted_confidence": 0.9, "settings": TurnSettings()}
    assert over("Mocha!", voiced_s=0.5, **known).decision == "interruption"


def test_an_exclaimed_word_of_a_voice_that_continues_decides_nothing():
    """The recogniser heard only a part of it, so more words may follow; if it lasts, it counts."""
    known = {"text": "Hey!", "confidence": 0.79}
    assert judged(TurnSettings(), voiced_s=0.5, **known).decision == "undecided"
    assert judged(TurnSettings(), voiced_s=0.8, **known).rule == "min_duration_s"


@pytest.mark.parametrize("text", ["But...", "W-"])
def test_a_sure_word_that_breaks_off_may_go_on(text):
    """ "Well ..., I": the agent is held for a breath, unless the sound seems a sneeze."""
    known = {"is_voiced": False, "words_known": True, "confidence": 0.8, "voiced_s": 0.3}
    waiting = judged(text=text, silent_s=0.3, **known)
    assert (waiting.decision, waiting.ask_in_s) == ("undecided", pytest.approx(0.3))
    assert judged(text=text, silent_s=0.6, **known).rule == "noises"
    sneeze = Hint("noise", 0.5)
    assert judged(text=text, silent_s=0.3, hint=sneeze, **known).decision == "noise"


@pytest.mark.parametrize(
    ("text", "voiced_s", "confidence", "decision"),
    [
        ("In earnest", 0.5, 0.4, "undecided"),
        ("In earnest", 0.49, 0.4, "silence"),
        ("In earnest", 0.5, 0.39, "silence"),
        ("EH EH", 0.5, 0.4, "silence"),
    ],
)
def test_unsure_words_in_a_gap_of_a_sentence(text, voiced_s, confidence, decision):
    """A voice that lasts and may have said something is held for, a throat that is cleared not."""
    known = {"words_tentative": True, "is_voiced": False, "silent_s": 0.05}
    verdict = judged(
        text=text, voiced_s=voiced_s, confidence=confidence, settings=TurnSettings(), **known
    )
    assert verdict.decision == decision


@pytest.mark.parametrize("text", ["But...", "I..."])
def test_a_long_sound_is_no_word_that_breaks_off(text):
    """Who breaks a word off does so early: what lasts longer is a sneeze or a sigh for now."""
    known = {"text": text, "confidence": 0.9, "is_voiced": False, "hint": Hint("speech", 0.95)}
    gap = {"words_tentative": True, "silent_s": 0.05}
    begins, sneeze = (judged(voiced_s=voiced_s, **known, **gap) for voiced_s in (0.39, 0.4))
    assert (begins.decision, sneeze.decision) == ("undecided", "silence")
    assert (sneeze.rule, sneeze.final) == ("noises", False)
    whole = judged(voiced_s=0.4, words_known=True, silent_s=0.26, **known)
    assert whole.decision == "undecided", "somebody may draw it out, and go on"


def test_a_single_word_needs_more_confidence():
    """Of a throat that is cleared Whisper makes "You"; numbers and "no" count from 0.5 on."""
    verdict = over("You.", confidence=0.6, voiced_s=0.4)
    assert (verdict.decision, verdict.values["min_confidence"]) == ("noise", 0.65)
    assert over("You.", confidence=0.66, voiced_s=0.4).decision == "interruption"
    assert over("You know.", confidence=0.6, voiced_s=0.4).decision == "interruption"
    assert over("Two.", confidence=0.55, voiced_s=0.4).decision == "interruption"
    assert over("No.", confidence=0.55, voiced_s=0.4).decision == "interruption"


def test_a_scrap_of_a_sure_echo_is_no_interruption():
    """So little of an echo is misheard that its words are not the agent's; a sentence counts."""
    hint = Hint("echo", 0.98)
    assert over("Rain day.", hint=hint, voiced_s=0.3).decision == "echo"
    assert over("Stop.", hint=hint, voiced_s=0.3).decision == "interruption"
    assert over("I want a tea.", hint=hint, voiced_s=0.7).decision == "interruption"


def test_misheard_words_can_be_turned_off():
    """With 0, the words of a hum count."""
    hint, settings = Hint("acknowledgement", 0.99), TurnSettings(misheard_words=0)
    assert over("Emma.", hint=hint, settings=settings).decision == "interruption"


@pytest.mark.parametrize(
    ("text", "known", "decision"),
    [
        ("Mocha, mocha,", {"confidence": 0.49}, "noise"),
        ("Mocha, mocha,", {"confidence": 0.5}, "interruption"),
        ("Mocha, mocha,", {"confidence": None}, "interruption"),
        ("Mm.", {"confidence": 0.3}, "acknowledgement"),
        ("Stop.", {"confidence": 0.39}, "noise"),
        ("Stop.", {"confidence": 0.4}, "interruption"),
        ("Stop.", {"confidence": None}, "interruption"),
        ("Stop.", {"confidence": 0.2, "voiced_s": 1.79}, "noise"),
        ("Stop.", {"confidence": 0.2, "voiced_s": 1.8}, "interruption"),
        ("A large latte, a mocha.", {"confidence": 0.69}, "noise"),
        ("A large latte, a mocha.", {"confidence": 0.7}, "interruption"),
        ("A large latte, a mocha.", {"confidence": 0.69, "voiced_s": 0.45}, "interruption"),
        ("I want a tea.", {"confidence": 0.49, "voiced_s": 0.89}, "noise"),
        ("I want a tea.", {"confidence": 0.49, "voiced_s": 0.9}, "interruption"),
        ("I want a tea.", {"confidence": 0.3, "voiced_s": 1.79}, "noise"),
        ("I want a tea.", {"confidence": 0.3, "voiced_s": 1.8}, "interruption"),
        ("I'm so sorry.", {"confidence": 0.84, "voiced_s": 0.15}, "noise"),
        ("I'm so sorry.", {"confidence": 0.85, "voiced_s": 0.15}, "interruption"),
        ("I'm so sorry.", {"confidence": 0.84, "voiced_before_s": 0.1}, "interruption"),
        ("And.", {"confidence": 0.79, "since_noise_s": 1.9}, "noise"),
        ("And.", {"confidence": 0.79, "since_noise_s": 2.1}, "interruption"),
        ("Two.", {"confidence": 0.6, "since_noise_s": 1.0}, "interruption"),
    ],
)
def test_words_that_a_recogniser_is_unsure_of_are_noise(text, known, decision):
    """What it makes of a cough does not interrupt, nor does a "stop" that nobody said; who speaks
    for long does."""
    assert over(text, **{"voiced_s": 0.3, **known}).decision == decision


@pytest.mark.parametrize(
    ("known", "evidence"),
    [
        ({"text": "a tea", "confidence": 0.4}, None),
        ({"text": "mocha", "confidence": 0.6}, "single word"),
        ({"text": "f", "confidence": 0.7}, "single consonant"),
        ({"text": "mocha", "confidence": 0.7, "since_noise_s": 1.0}, "single word after a noise"),
        ({"text": "so sorry about all that", "confidence": 0.6}, "too fast for speech"),
        ({"text": "a tea", "confidence": 0.9, "hint": Hint("noise", 0.95)}, "sounds like a noise"),
        ({"text": "Ha ha.", "confidence": 0.9}, "written as a noise"),
        ({"text": "Bye, Joe!", "confidence": 0.7}, "exclaimed"),
        ({"text": "But...", "confidence": 0.7, "silent_s": 0.6}, "breaks off"),
    ],
)
def test_what_made_noise_of_words_is_told(known, evidence):
    """The limit may be higher than the setting: the decision says why, and how sure a hint was."""
    values = over(**{"voiced_s": 0.3, **known}).values
    assert values.get("evidence") == evidence
    assert ("probability" in values) == ("hint" in known)


def test_unsure_words_let_the_agent_go_on_for_now():
    """Before the sound is over better words may come, and a voice that lasts still interrupts."""
    verdict = judged(text="mocha", confidence=0.3, voiced_s=0.3)
    assert (verdict.decision, verdict.rule, verdict.final) == ("noise", "min_confidence", False)
    assert verdict.values == {
        "confidence": 0.3,
        "min_confidence": 0.65,
        "words": 1,
        "evidence": "single word",
    }
    assert judged(text="mocha", confidence=0.3, voiced_s=0.5).decision == "noise"
    speech = {"confidence": 0.3, "hint": Hint("speech", 0.9)}
    assert judged(text="mocha", voiced_s=0.3, **speech).decision == "undecided", "it is speech"
    assert judged(text="mocha", voiced_s=0.5, **speech).rule == "min_duration_s"
    assert judged(text="Mmm", voiced_s=5.0, **speech).rule == "acknowledgements", "a throat"
    verdict = judged(text="mocha", confidence=0.4, voiced_s=0.3)
    assert verdict.decision == "undecided", "it stops soon, or interrupts by lasting"
    assert verdict.ask_in_s == pytest.approx(0.2)
    assert judged(text="mocha", confidence=0.4, voiced_s=0.5).rule == "min_duration_s"


@pytest.mark.parametrize(
    ("text", "confidence", "decision", "rule"),
    [
        ("", None, "silence", "words"),
        ("Ha ha.", 0.9, "silence", "noises"),
        ("Mm-hmm.", 0.9, "silence", "acknowledgements"),
        ("mocha", 0.49, "silence", "min_confidence"),
        ("mocha", 0.64, "undecided", ""),
        ("mocha", 0.65, "undecided", ""),
        ("But...", 0.49, "silence", "min_confidence"),
        ("But...", 0.7, "undecided", ""),
        ("stop", 0.9, "undecided", ""),
    ],
)
def test_words_in_a_gap_tell_whether_more_is_awaited(text, confidence, decision, rule):
    """They interrupt nothing; words that may be said in earnest hold the agent for a breath."""
    known = {"text": text, "confidence": confidence, "words_tentative": True, "voiced_s": 0.3}
    verdict = judged(is_voiced=False, silent_s=0.1, **known)
    assert (verdict.decision, verdict.rule, verdict.final) == (decision, rule, False)
    if text == "stop":
        assert verdict.ask_in_s == pytest.approx(0.5)
    going_on = judged(**known)
    assert (going_on.decision, going_on.rule) == ("undecided", ""), "it was a gap"


def test_the_doubts_of_a_recogniser_can_be_turned_off():
    """With 0, all words count."""
    settings = TurnSettings(min_confidence=0.0)
    assert over("mocha", confidence=0.01, settings=settings).decision == "interruption"
    fast = over("a mocha and a tea", confidence=0.6, voiced_s=0.2, settings=settings)
    assert fast.decision == "interruption"


COUGHS = [
    ("Mocha, cappuccino, mocha.", 0.502, 0.152),  # AMD EPYC with AVX2, as all that follow
    ("Mocha, cappuccino, mocha, mochas.", 0.487, 0.103),
    ("Mocha, mocha,", 0.541, 0.325),
    ("Mocha, mocha,", 0.552, 0.241),
    ("M-", 0.586, 0.289),
    ("The", 0.507, 0.308),
    ("Mocha, cappuccino, mocha.", 0.490, 0.144),  # without any of a processor's extensions
    ("Mocha, mocha,", 0.413, 0.224),
]
"""What Whisper made of synthetic coughs with a hint, how sure of it, and how sure without one."""

SAID = [
    ("Latte.", 0.958, 0.826),
    ("Mocha.", 0.974, 0.842),
    ("Espresso.", 0.976, 0.880),
    ("tea, tea, tea.", 0.940, 0.820),
    ("muffin.", 0.763, 0.650),
    ("espresso.", 0.545, 0.560),
]
"""The same of words that synthetic voices said, two of them over a telephone."""


@pytest.mark.parametrize(("text", "confidence", "unhinted"), COUGHS)
def test_words_that_only_a_hint_makes_sure_are_noise(text, confidence, unhinted):
    """What a recogniser reads out of its hint into a cough interrupts nothing."""
    verdict = over(text, confidence=confidence, unhinted_confidence=unhinted, voiced_s=0.3)
    assert (verdict.decision, verdict.rule, verdict.final) == ("noise", "hint_words", True)


@pytest.mark.parametrize(("text", "confidence", "unhinted"), SAID)
def test_a_word_of_the_hint_that_was_said_interrupts(text, confidence, unhinted):
    """The recogniser is sure that somebody spoke without the hint, too."""
    verdict = over(text, confidence=confidence, unhinted_confidence=unhinted, voiced_s=0.4)
    assert (verdict.decision, verdict.rule) == ("interruption", "min_words")


def test_the_reason_is_told():
    """The decision has both confidences and the limit, and stays open while more may come."""
    known = {"text": "mocha", "confidence": 0.552, "unhinted_confidence": 0.241, "voiced_s": 0.3}
    verdict = judged(**known)
    assert (verdict.decision, verdict.rule, verdict.final) == ("noise", "hint_words", False)
    assert verdict.values == {
        "words": 1,
        "confidence": 0.552,
        "unhinted_confidence": 0.241,
        "min_confidence": 0.5,
    }
    assert judged(**{**known, "voiced_s": 0.5}).rule == "min_duration_s"


def test_a_hint_does_not_silence_who_goes_on_or_wants_a_stop():
    """A voice that lasts, an interruption phrase, or `min_confidence=0` let the words count."""
    known = {"confidence": 0.5, "unhinted_confidence": 0.0}
    assert over("Mocha, latte.", voiced_s=0.9, **known).decision == "interruption"
    assert over("Stop.", voiced_s=0.3, **known).rule == "interruption_phrases"
    settings = TurnSettings(min_confidence=0.0)
    assert over("Mocha.", settings=settings, **known).decision == "interruption"
