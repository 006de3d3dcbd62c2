"""What recognisers write of a breath, a click or a radio is no turn."""

from __future__ import annotations

import pytest

from bargein.events import (
    UserTranscriptionReceived,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
    WordTiming,
)

from .conftest import says

MARKS = (".", "...", "\u2026", "?!", "-", "\u3002", "\u00bf?", "_", "'", "\u200b.")
NOTES = (
    "(music)",
    "[BLANK_AUDIO]",
    "[ Silence ]",
    "*coughs*",
    "**applause**",
    "\u266a",
    "\u266a la la la \u266a",
    "\U0001f3b5 la la",
    "{noise}",
    "<unk>",
    "(laughs) (door slams).",
    "\u3010\u97f3\u697d\u3011",
    "\uff08\u7b11\uff09",
    "(\u043c\u0443\u0437\u044b\u043a\u0430)",
)


@pytest.mark.parametrize("text", [*MARKS, *NOTES])
def test_in_silence_they_are_no_words(bench, idle, text):
    """The turn that the voice began has no words, so nobody is asked."""
    b = bench(idle).take(VoiceStarted()).wait(0.3).take(says(text, final=False)).wait(0.3)
    b.take(VoiceStopped()).take(says(text)).rest()
    assert "stop" not in b.turns
    assert text not in b.turns


@pytest.mark.parametrize("text", [*MARKS, *NOTES])
@pytest.mark.parametrize("final", [True, False])
def test_over_the_agent_they_cut_nothing(bench, speaking, text, final):
    """The agent is held for as long as the sound is undecided, and goes on."""
    b = bench(speaking).take(VoiceStarted()).wait(0.3).take(says(text, final=final))
    b.take(VoiceStopped()).rest()
    assert "start" not in b.turns


@pytest.mark.parametrize("text", [".", "(music)"])
def test_words_without_a_voice_are_none_either(bench, idle, text):
    """A recogniser that hears more than the voice detector begins no turn with them."""
    assert bench(idle).take(says(text)).rest().turns == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(phone ringing) Two lattes, please.", "Two lattes, please."),
        ("Two lattes [noise], please.", "Two lattes, please."),
        ("[laughter]. So, two lattes", "So, two lattes"),
        ("Call (555) 123-4567", "Call (555) 123-4567"),
        ("five * three", "five * three"),
        ("2 * 3 * 4", "2 * 3 * 4"),
        ("it costs 5 < 6", "it costs 5 < 6"),
        ("\u7b2c\u4e5d", "\u7b2c\u4e5d"),
        ("7", "7"),
    ],
)
def test_what_is_said_beside_a_note_is_a_turn(bench, idle, text, said):
    """Words and digits are kept, as are brackets around a part of a telephone number."""
    b = bench(idle).take(VoiceStarted()).wait(0.5).take(VoiceStopped()).take(says(text)).rest()
    assert b.turns == ["start", said, "stop"]


def test_a_note_takes_the_times_of_the_words_with_it(bench, idle):
    """Times that may belong to other words are worse than none."""
    times = tuple(WordTiming(text, n, n + 0.5) for n, text in enumerate(("(door", "slams)", "yes")))
    heard = VoiceWords(content="(door slams) yes", words=times)
    b = bench(idle).take(VoiceStarted()).wait(0.5).take(VoiceStopped()).take(heard).rest()
    assert b.turns == ["start", "yes", "stop"]
    assert b.events(UserTranscriptionReceived)[-1].words == ()
