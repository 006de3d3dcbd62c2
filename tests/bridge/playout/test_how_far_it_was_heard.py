"""An utterance's own books: text, audio, positions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.bridge.playout._segment import CHARS_PER_S
from bargein.bridge.playout._utterance import REPORT_TRUSTED_S, Utterance
from bargein.events import AgentAudio, WordTiming

RATE = 1000


def spoken(*parts: tuple[str, int], text: str | None = None) -> Utterance:
    """An utterance of pieces of text and the length of their audio in ms, all of it sent at 0 s."""
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no turn
    utterance.generated = "".join(part for part, _ in parts) if text is None else text
    for part, ms in parts:
        utterance.add_audio(AgentAudio(bytes(2 * ms), RATE, part))
    utterance.sent(utterance.audio_ms, 0.0, 0.0)
    utterance.text_complete = utterance.audio_complete = True
    return utterance


def test_heard_text_grows_over_pieces():
    """Whole pieces are heard whole, the piece under way to the word."""
    utterance = spoken(("One two. ", 900), ("Three four.", 1100))
    told = [utterance.hear(ms) for ms in (0, 300, 899.5, 1400, 1399, 2000)]
    assert told == ["", "One", " two. ", "Three", "", " four."]
    assert utterance.heard == utterance.generated
    assert utterance.is_heard_whole


def test_white_space_is_heard_with_the_word_after_it():
    """A gap alone is no news, except at the very end."""
    utterance = spoken(("One", 300), (" ", 100), ("two", 300), (" ", 100))
    assert [utterance.hear(ms) for ms in (300, 400, 700, 800)] == ["One", "", " two", " "]
    growing = spoken(("One", 300), (" ", 100))
    growing.text_complete = False
    assert [growing.hear(ms) for ms in (300, 400)] == ["One", ""]
    growing.generated += "two"
    growing.add_audio(AgentAudio(bytes(600), RATE, "two"))
    assert growing.hear(700) == " two"


def test_a_piece_that_was_never_synthesised_ends_what_is_heard():
    """Heard stays a prefix of generated: what follows a hole does not count."""
    utterance = spoken(("One. ", 500), ("Three.", 600), text="One. Two. Three.")
    assert utterance.hear(1100) == "One. "
    assert not utterance.is_heard_whole


def test_a_piece_without_sound_counts_when_it_is_reached():
    """A trailing emoji that a voice cannot say is no reason to call the speech unheard."""
    utterance = spoken(("Hello ", 600), ("😊", 0))
    assert utterance.hear(590) == "Hello"
    assert utterance.hear(600) == " 😊"
    only = spoken(("😊", 0))
    assert only.hear(0) == ""


def test_audio_without_text_says_all_of_it():
    """A recording that comes without words is heard by its share, and whole at the end."""
    utterance = spoken(("", 1000), text="Hello there")
    assert utterance.hear(600) == "Hello"
    assert utterance.hear(1000) == " there"
    assert utterance.basis == "clock"


def test_a_growing_piece_is_never_heard_whole():
    """Until its last audio is there, its length is guessed from its text."""
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no turn
    utterance.generated = text = "One two three four"
    utterance.add_audio(AgentAudio(bytes(2 * 400), RATE, text, last=False))
    utterance.hear(400)
    assert utterance.heard == "One"  # 0.4 s at 15 characters a second are 6 characters
    assert pytest.approx(15) == CHARS_PER_S
    utterance.add_audio(AgentAudio(bytes(2 * 5000), RATE, last=False))
    assert utterance.hear(5400) == " two three"  # never the last word
    utterance.add_audio(AgentAudio(b"", RATE, last=True))
    assert utterance.hear(5400) == " four"


def test_the_basis_is_the_best_that_is_known():
    """Timings are better than reports, reports better than the clock."""
    utterance = spoken(("one", 300))
    utterance.hear(300)
    assert utterance.basis == "clock"
    reported = spoken(("one", 300))
    reported.report(300, 0.3, stalled=False)
    reported.hear(300)
    assert reported.basis == "reported"
    timed = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no turn
    timed.generated = "one"
    timed.add_audio(AgentAudio(bytes(600), RATE, "one", (WordTiming("one", 0, 0.3),)))
    timed.hear(300)
    assert timed.basis == "words"


def test_a_position_is_carried_on_by_the_clock_within_what_was_sent():
    """Between reports time goes on, but never past the audio that is there."""
    utterance = spoken(("one two", 700))
    assert utterance.position_ms(0.5) == 500
    utterance.report(400, 0.5, stalled=False)
    assert utterance.position_ms(0.6) == pytest.approx(500)
    assert utterance.position_ms(9) == 700
    assert (utterance.starts_at_s, utterance.ends_at_s) == (0.5, pytest.approx(0.8))
    assert utterance.played_ms == 400


def test_a_fresh_report_is_sure_and_an_old_one_is_not():
    """A quarter of a second after the last report the clock is believed."""
    utterance = spoken(("one two", 700))
    utterance.report(100, 0.1, stalled=False)
    assert utterance.sure_position_ms(0.1 + REPORT_TRUSTED_S) == 100
    assert utterance.sure_position_ms(0.4) == pytest.approx(400)


def test_reports_never_go_back_nor_beyond():
    """An impossible position is put right, and what is no number changes nothing."""
    utterance = spoken(("one two", 700))
    utterance.report(500, 0.5, stalled=False)
    for nonsense, possible in ((300, 500), (math.nan, 500), (-1, 500), (900, 700), (math.inf, 700)):
        assert utterance.possible_ms(nonsense) == possible


def test_nothing_sent_has_no_position():
    """Before the first audio there is no start, no end, and nothing played."""
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no turn
    assert (utterance.position_ms(5), utterance.starts_at_s) == (0.0, math.inf)
    assert utterance.ends_at_s == math.inf
    assert utterance.run is None
    assert utterance.hear(100) == ""


def test_text_mode_hears_all_at_once():
    """Where only text travels, what was sent was heard."""
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no turn
    utterance.add_text("one")
    utterance.hear_as_text()
    assert utterance.heard == "one"
    utterance.add_text(" two")
    utterance.hear_as_text()
    assert utterance.heard == "one two"


# --- given again ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position_ms", "from_ms"),
    [
        (0, 0),
        (299, 0),
        (300, 0),
        (799, 0),
        (800, 400),
        (950, 400),  # the pause after "two." has no word
        (1199, 400),
        (1400, 900),
        (1990, 900),
        (2000, 2000),
    ],
)
def test_what_is_given_again_begins_with_the_last_heard_word(position_ms, from_ms):
    """From its beginning; from the start if none was heard, from there on if none is left."""
    utterance = spoken(("One two. ", 900), ("Three four.", 1100))
    assert utterance.again_from_ms(position_ms) == pytest.approx(from_ms)


def test_it_begins_with_the_last_heard_word_of_a_growing_text():
    """While more text may come, the last word there is counts like any other."""
    utterance = spoken(("One two", 700))
    utterance.text_complete = False
    assert utterance.again_from_ms(700) == pytest.approx(400)


def test_audio_without_text_says_all_of_it_again():
    """Where the voice gives no text with its audio, words lie by their share of it."""
    utterance = spoken(("", 800), text="One two.")
    assert utterance.again_from_ms(500) == 0
    assert utterance.again_from_ms(300) == 0
    utterance.generated = "One two. Three"
    utterance.audio_complete = utterance.text_complete = False
    assert utterance.again_from_ms(780) == pytest.approx(4 / CHARS_PER_S * 1000, abs=0.5)


def test_a_position_is_told_by_any_of_its_numbers():
    """Each number counts from where its audio began, and never beyond what it had."""
    utterance = spoken(("one two three", 1300))
    utterance.started = True
    utterance.give_again(5, 400, 900, 1.0)
    assert (utterance.number, utterance.play_number) == (1, 5)
    assert utterance.position_ms(9) == utterance.sent_ms == 400
    assert utterance.went_by(1)
    assert not utterance.went_by(5)
    utterance.sent(900, 1.0, 1.0)
    assert utterance.went_by(5)
    assert not utterance.went_by(2)
    assert utterance.place_of(1, 1000) == 1000
    assert utterance.place_of(1, 5000) == 1300
    assert utterance.place_of(5, 100) == 500
    assert utterance.position_ms(1.1) == pytest.approx(500)
    utterance.give_again(6, 500, 500, 1.1)
    assert (utterance.place_of(5, 5000), utterance.place_of(6, 10)) == (1300, 510)
    assert utterance.played_once_ms == 900


def test_what_had_not_begun_is_given_again_as_new():
    """It has no position, no start and no report until it is sent anew."""
    utterance = spoken(("one two", 700))
    utterance.give_again(2, 0, 0, 1.0)
    assert (utterance.starts_at_s, utterance.position_ms(5)) == (math.inf, 0)
    assert not utterance.is_reported


def test_what_its_player_has_lost_is_known_by_its_last_report():
    """Without a report the clock is all there is."""
    utterance = spoken(("one two", 700))
    assert utterance.known_position_ms(0.5, lost=True) == 0
    utterance.started = True
    assert utterance.known_position_ms(0.5, lost=True) == 500
    utterance.report(200, 0.2, stalled=False)
    assert utterance.known_position_ms(0.6, lost=True) == 200
    assert utterance.known_position_ms(0.6, lost=False) == pytest.approx(600)


def test_a_piece_that_ends_early_is_heard_early():
    """Its words end earlier than its text let expect, once its last audio is there."""
    utterance = spoken(("One two", 100))
    utterance.segments[0].complete = utterance.audio_complete = False
    assert utterance.hear(90) == ""
    utterance.add_audio(AgentAudio(bytes(2 * 60), RATE, last=True))
    assert utterance.hear(91) == "One"


def test_more_text_for_the_same_audio_is_heard_earlier():
    """Audio that came without words says all the text there is."""
    utterance = spoken(("", 1000), text="One")
    utterance.text_complete = utterance.audio_complete = False
    assert utterance.hear(300) == ""
    utterance.generated += " two three four five six"
    assert utterance.hear(301) == "One"


def test_timings_that_come_later_are_heard_by():
    """A voice may tell where its words lie after their audio."""
    utterance = spoken(("One two", 100))
    utterance.segments[0].complete = False
    assert utterance.hear(90) == ""
    timings = (WordTiming("One", -0.1, -0.02),)
    utterance.add_audio(AgentAudio(b"", RATE, last=False, words=timings))
    assert utterance.hear(91) == "One"


WORDS = ("One ", "two, ", "three ", "你好世界", " four.", " ", "😊")
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("text"), st.sampled_from(WORDS)),
        st.tuples(st.just("piece"), st.sampled_from(WORDS), st.integers(0, 900), st.booleans()),
        st.tuples(st.just("timed"), st.sampled_from(WORDS), st.integers(20, 900), st.booleans()),
        st.tuples(st.just("more"), st.integers(0, 900), st.booleans()),
        st.tuples(st.just("hear"), st.integers(0, 4000)),
        st.tuples(st.just("text_complete")),
        st.tuples(st.just("audio_complete")),
    ),
    max_size=30,
)


@given(STEPS)
def test_words_are_heard_as_soon_as_they_end_whatever_comes_between(steps):
    """Until the next word can end nothing is looked at, and nothing is heard later for it."""
    looks, forgets = (Utterance(1, None, interruptible=True) for _ in range(2))  # type: ignore[arg-type]
    for kind, *given_ in steps:
        for utterance in (looks, forgets):
            match kind, *given_:
                case "text", text:
                    utterance.generated += text
                case "piece", text, ms, last:
                    utterance.generated += text
                    utterance.add_audio(AgentAudio(bytes(2 * ms), RATE, text, last=last))
                case "timed", text, ms, last:
                    utterance.generated += text
                    word = WordTiming(text.strip(), 0.1 * ms / 1000, 0.9 * ms / 1000)
                    audio = AgentAudio(bytes(2 * ms), RATE, text, last=last, words=(word,))
                    utterance.add_audio(audio)
                case "more", ms, last:
                    utterance.add_audio(AgentAudio(bytes(2 * ms), RATE, last=last))
                case "text_complete" | "audio_complete" as flag, *_:
                    setattr(utterance, flag, True)
        if kind == "hear":
            forgets._quiet_until_ms = 0.0
            assert looks.hear(given_[0]) == forgets.hear(given_[0])
