"""How far an utterance was heard: positions, words, and where it resumes."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.bridge.playout._segment import CHARS_PER_S, heard_length, last_word_start_s
from bargein.bridge.playout._utterance import REPORT_TRUSTED_S, Utterance
from bargein.bridge.playout.word_alignment import word_ends
from bargein.events import AgentAudio, WordTiming

RATE = 1000


def spoken(*parts: tuple[str, int], text: str | None = None) -> Utterance:
    """An utterance of pieces of text and the length of their audio in ms, all of it sent at 0 s."""
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no answer
    utterance.generated = "".join(part for part, _ in parts) if text is None else text
    for part, ms in parts:
        utterance.add_audio(AgentAudio(bytes(2 * ms), RATE, part))
    utterance.played.sent(utterance.audio_ms, 0.0, 0.0)
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
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no answer
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
    reported.played.report(300, 0.3, stalled=False)
    reported.hear(300)
    assert reported.basis == "reported"
    timed = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no answer
    timed.generated = "one"
    timed.add_audio(AgentAudio(bytes(600), RATE, "one", (WordTiming("one", 0, 0.3),)))
    timed.hear(300)
    assert timed.basis == "words"


def test_a_position_is_carried_on_by_the_clock_within_what_was_sent():
    """Between reports time goes on, but never past the audio that is there."""
    utterance = spoken(("one two", 700))
    assert utterance.played.position_ms(0.5) == 500
    utterance.played.report(400, 0.5, stalled=False)
    assert utterance.played.position_ms(0.6) == pytest.approx(500)
    assert utterance.played.position_ms(9) == 700
    assert (utterance.played.starts_at_s, utterance.played.ends_at_s) == (0.5, pytest.approx(0.8))
    assert utterance.played.played_ms == 400


def test_a_fresh_report_is_sure_and_an_old_one_is_not():
    """A quarter of a second after the last report the clock is believed."""
    utterance = spoken(("one two", 700))
    utterance.played.report(100, 0.1, stalled=False)
    assert utterance.played.sure_position_ms(0.1 + REPORT_TRUSTED_S) == 100
    assert utterance.played.sure_position_ms(0.4) == pytest.approx(400)


def test_reports_never_go_back_nor_beyond():
    """An impossible position is put right, and what is no number changes nothing."""
    utterance = spoken(("one two", 700))
    utterance.played.report(500, 0.5, stalled=False)
    for nonsense, possible in ((300, 500), (math.nan, 500), (-1, 500), (900, 700), (math.inf, 700)):
        assert utterance.played.possible_ms(nonsense) == possible


def test_nothing_sent_has_no_position():
    """Before the first audio there is no start, no end, and nothing played."""
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no answer
    assert (utterance.played.position_ms(5), utterance.played.starts_at_s) == (0.0, math.inf)
    assert utterance.played.ends_at_s == math.inf
    assert utterance.run is None
    assert utterance.hear(100) == ""


def test_text_mode_hears_all_at_once():
    """Where only text travels, what was sent was heard."""
    utterance = Utterance(1, None, interruptible=True)  # type: ignore[arg-type]  # no answer
    utterance.add_text("one")
    utterance.hear_to(len(utterance.generated), "text")
    assert utterance.heard == "one"
    utterance.add_text(" two")
    utterance.hear_to(len(utterance.generated), "text")
    assert utterance.heard == "one two"


# --- sent again -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("position_ms", "from_ms"),
    [
        (0, 0),
        (299, 0),
        (300, 300),  # "two" has not begun yet
        (799, 400),
        (800, 800),  # the pause after "two." has no word
        (950, 900),
        (1199, 900),
        (1400, 1400),
        (1990, 1500),
        (2000, 2000),
    ],
)
def test_what_is_sent_again_begins_with_the_first_word_not_heard(position_ms, from_ms):
    """From its beginning, or from the position if it has not begun, or none is left."""
    utterance = spoken(("One two. ", 900), ("Three four.", 1100))
    assert utterance.resend_from_ms(position_ms) == pytest.approx(from_ms)


def test_a_growing_text_continues_where_it_was():
    """While more text may come, nothing is said again of words that were heard."""
    utterance = spoken(("One two", 700))
    utterance.text_complete = False
    assert utterance.resend_from_ms(700) == pytest.approx(700)
    assert utterance.resend_from_ms(500) == pytest.approx(400)


def test_audio_without_text_goes_by_shares():
    """Where the voice gives no text with its audio, words lie by their share of it."""
    utterance = spoken(("", 800), text="One two.")
    assert utterance.resend_from_ms(500) == pytest.approx(400)
    assert utterance.resend_from_ms(200) == 0
    utterance.generated = "One two. Three"
    utterance.audio_complete = utterance.text_complete = False
    assert utterance.resend_from_ms(480) == pytest.approx(4 / CHARS_PER_S * 1000, abs=0.5)


def test_a_position_is_told_by_any_of_its_numbers():
    """Each number counts from where its audio began, and never beyond what it had."""
    utterance = spoken(("one two three", 1300))
    utterance.played.started = True
    utterance.mark_resent(5, 400, 900, 1.0)
    assert (utterance.number, utterance.play_number) == (1, 5)
    assert utterance.played.position_ms(9) == utterance.played.sent_ms == 400
    assert utterance.went_by(1)
    assert not utterance.went_by(5)
    utterance.played.sent(900, 1.0, 1.0)
    assert utterance.went_by(5)
    assert not utterance.went_by(2)
    assert utterance.place_of(1, 1000) == 1000
    assert utterance.place_of(1, 5000) == 1300
    assert utterance.place_of(5, 100) == 500
    assert utterance.played.position_ms(1.1) == pytest.approx(500)
    utterance.mark_resent(6, 500, 500, 1.1)
    assert (utterance.place_of(5, 5000), utterance.place_of(6, 10)) == (1300, 510)
    assert utterance.played_once_ms == 900


def test_what_had_not_begun_is_sent_again_as_new():
    """It has no position, no start and no report until it is sent anew."""
    utterance = spoken(("one two", 700))
    utterance.mark_resent(2, 0, 0, 1.0)
    assert (utterance.played.starts_at_s, utterance.played.position_ms(5)) == (math.inf, 0)
    assert not utterance.played.is_reported


def test_what_its_player_has_lost_is_known_by_its_last_report():
    """Without a report the clock is all there is."""
    utterance = spoken(("one two", 700))
    assert utterance.played.known_position_ms(0.5, lost=True) == 0
    utterance.played.started = True
    assert utterance.played.known_position_ms(0.5, lost=True) == 500
    utterance.played.report(200, 0.2, stalled=False)
    assert utterance.played.known_position_ms(0.6, lost=True) == 200
    assert utterance.played.known_position_ms(0.6, lost=False) == pytest.approx(600)


def test_a_piece_that_ends_early_is_heard_early():
    """Its words end earlier than its text let expect, once its last audio is there."""
    utterance = spoken(("One two", 100))
    utterance.segments.pieces[0].complete = utterance.audio_complete = False
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
    utterance.segments.pieces[0].complete = False
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


# --- words ----------------------------------------------------------------------------------------


def pieces(text: str) -> list[str]:
    """The text, cut at its word ends."""
    ends = [0, *word_ends(text)]
    return [text[a:b] for a, b in itertools.pairwise(ends)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One large latte, please.", ["One", " large", " latte,", " please."]),
        ("  spaced   out  ", ["  spaced", "   out"]),
        ("", []),
        (" \n\t", []),
        ("naïve café", ["naïve", " café"]),
        ("cafe\u0301 ok", ["cafe\u0301", " ok"]),
        ("👍🏽 👩\u200d👩\u200d👧 ok", ["👍🏽", " 👩\u200d👩\u200d👧", " ok"]),
    ],
)
def test_words_end_at_spaces(text, expected):
    """A word ends with its punctuation and marks; what follows the last is no word."""
    assert pieces(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("你好世界", ["你", "好", "世", "界"]),
        ("你好。请说\uff01", ["你", "好。", "请", "说\uff01"]),
        ("他说「好」。", ["他", "说", "「", "好」。"]),
        ("コーヒーを", ["コ", "ー", "ヒ", "ー", "を"]),
        ("か\u3099く", ["か\u3099", "く"]),
        ("我用Python写100行", ["我", "用", "Python", "写", "100", "行"]),
        ("好👍🏽吗", ["好", "👍🏽", "吗"]),
        ("好👩\u200d👧吗", ["好", "👩\u200d👧", "吗"]),
        ("去🇨🇳🇯🇵吧", ["去", "🇨🇳", "🇯🇵", "吧"]),
        ("น้ำ", ["น้ำ"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
    ],
)
def test_scripts_without_spaces_go_by_character(text, expected):
    """Each user-perceived character of Chinese, Japanese or Thai counts for itself."""
    assert pieces(text) == expected


def test_without_timings_the_share_of_the_audio_decides():
    """Half the audio is half the characters, back to the last whole word."""
    text = "One two three four"
    assert text[: heard_length(text, (), 0.9, 1.8)] == "One two"
    assert text[: heard_length(text, (), 0.7, 1.8)] == "One two"
    assert text[: heard_length(text, (), 0.69, 1.8)] == "One"
    assert heard_length("你好世界", (), 0.5, 1.0) == 2


@pytest.mark.parametrize(
    ("played_s", "duration_s", "expected"),
    [(0, 1, 0), (-1, 1, 0), (1, 0, 0), (1, 1, 7), (2, 1, 7)],
)
def test_the_ends_are_exact(played_s, duration_s, expected):
    """Nothing played is nothing heard; all played is all heard."""
    assert heard_length("one two", (), played_s, duration_s) == expected


def test_timings_decide_where_there_are_any():
    """A word counts once its last sound was played, give or take a frame."""
    words = (WordTiming("one", 0.1, 0.3), WordTiming("two", 0.5, 0.9))
    assert heard_length("one two ", words, 0.29, 1.0) == 3
    assert heard_length("one two ", words, 0.27, 1.0) == 0
    assert heard_length("one two ", words, 0.87, 1.0) == 3
    assert heard_length("one two ", words, 0.89, 1.0) == 7


def test_words_that_the_engine_wrote_otherwise_have_the_time_between_the_others():
    """The digit 4, said as "four", ends before the word that follows it."""
    words = (WordTiming("take", 0, 0.2), WordTiming("four", 0.2, 0.4), WordTiming("now", 0.4, 0.6))
    assert heard_length("take 4 now", words, 0.3, 1.0) == 4
    assert heard_length("take 4 now", words, 0.5, 1.0) == 6
    assert heard_length("take 4 now", words, 0.6, 1.0) == 10


def test_repeated_words_are_found_in_their_order():
    """The second "no" is not taken for the first."""
    words = tuple(WordTiming("no", n / 10, (n + 1) / 10) for n in range(3))
    assert heard_length("no no no", words, 0.2, 0.4) == 5


def test_a_clause_that_is_timed_as_one_word_goes_by_character():
    """Engines without word breaks for Chinese give one timing for many characters."""
    words = (WordTiming("你好世界", 0.0, 0.4), WordTiming("再见", 0.5, 0.7))
    assert heard_length("你好世界 再见", words, 0.2, 1.0) == 2
    assert heard_length("你好世界 再见", words, 0.6, 1.0) == 6


@given(st.text(max_size=30), st.lists(st.floats(0, 2), min_size=2, max_size=5))
def test_more_played_is_never_less_heard(text, times):
    """The heard length is monotone, within the text, and at the end of a word."""
    lengths = [heard_length(text, (), played, 1.5) for played in sorted(times)]
    assert lengths == sorted(lengths)
    assert all(n in (0, len(text), *word_ends(text)) for n in lengths)


# --- where the last word that was heard begins ----------------------------------------------------

TEXT = "one two three"
WORDS_WORDS = (
    WordTiming("one", 0.1, 0.4),
    WordTiming("two", 0.5, 0.8),
    WordTiming("three", 0.9, 1.5),
)


@pytest.mark.parametrize(("end", "start_s"), [(3, 0.1), (7, 0.5), (13, 0.9)])
def test_word_timings_tell_where_it_begins(end, start_s):
    """With timings of the engine, the word begins where the engine says."""
    assert last_word_start_s(TEXT, WORDS_WORDS, end, 1.6) == start_s


@pytest.mark.parametrize(("end", "start_s"), [(3, 0.0), (7, 0.4), (13, 0.8)])
def test_without_timings_it_begins_at_its_share_of_the_audio(end, start_s):
    """Without timings, the share of the text before the word is its share of the audio."""
    assert last_word_start_s(TEXT, (), end, 1.3) == pytest.approx(start_s)


def test_a_word_that_the_engine_wrote_otherwise_begins_where_it_is_said():
    """A word that the timings name otherwise has the time of the words in its place."""
    words = (WordTiming("one", 0.1, 0.4), WordTiming("2", 0.5, 0.8), WordTiming("three", 0.9, 1.5))
    assert last_word_start_s(TEXT, words, 7, 1.6) == pytest.approx(0.5)


def test_in_scripts_without_spaces_a_character_is_a_word():
    """Where the engine times a whole clause, the last character begins at its share of it."""
    words = (WordTiming("一杯咖啡", 1.0, 2.0),)
    assert last_word_start_s("一杯咖啡", words, 3, 2.0) == pytest.approx(1.5)
    assert last_word_start_s("一杯咖啡", (), 3, 2.0) == pytest.approx(1.0)


@pytest.mark.parametrize("words", [WORDS_WORDS, ()])
def test_words_begin_in_their_order(words):
    """A later word never begins before an earlier one."""
    starts = [last_word_start_s(TEXT, words, end, 1.6) for end in word_ends(TEXT)]
    assert starts == sorted(starts)
