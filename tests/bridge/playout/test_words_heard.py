"""Which words of a text count as heard, and where the last of them begins in its audio."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.bridge.playout._resume_point import last_word_start_s
from bargein.bridge.playout._word_timing import heard_length, word_ends
from bargein.events import WordTiming


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


def test_words_that_the_engine_wrote_otherwise_are_passed_over():
    """The digit 4, said as "four", does not hide the words around it."""
    words = (WordTiming("take", 0, 0.2), WordTiming("four", 0.2, 0.4), WordTiming("now", 0.4, 0.6))
    assert heard_length("take 4 now", words, 0.5, 1.0) == 4
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
WORDS = (WordTiming("one", 0.1, 0.4), WordTiming("two", 0.5, 0.8), WordTiming("three", 0.9, 1.5))


@pytest.mark.parametrize(("end", "start_s"), [(3, 0.1), (7, 0.5), (13, 0.9)])
def test_word_timings_tell_where_it_begins(end, start_s):
    """With timings of the engine, the word begins where the engine says."""
    assert last_word_start_s(TEXT, WORDS, end, 1.6) == start_s


@pytest.mark.parametrize(("end", "start_s"), [(3, 0.0), (7, 0.4), (13, 0.8)])
def test_without_timings_it_begins_at_its_share_of_the_audio(end, start_s):
    """Without timings, the share of the text before the word is its share of the audio."""
    assert last_word_start_s(TEXT, (), end, 1.3) == pytest.approx(start_s)


def test_a_word_that_the_engine_wrote_otherwise_is_looked_for_around():
    """A word that the timings do not name begins where the one before it ends."""
    words = (WordTiming("one", 0.1, 0.4), WordTiming("2", 0.5, 0.8), WordTiming("three", 0.9, 1.5))
    assert last_word_start_s(TEXT, words, 7, 1.6) == pytest.approx(0.4)


def test_in_scripts_without_spaces_a_character_is_a_word():
    """Where the engine times a whole clause, the last character begins at its share of it."""
    words = (WordTiming("一杯咖啡", 1.0, 2.0),)
    assert last_word_start_s("一杯咖啡", words, 3, 2.0) == pytest.approx(1.5)
    assert last_word_start_s("一杯咖啡", (), 3, 2.0) == pytest.approx(1.0)


@pytest.mark.parametrize("words", [WORDS, ()])
def test_words_begin_in_their_order(words):
    """A later word never begins before an earlier one."""
    starts = [last_word_start_s(TEXT, words, end, 1.6) for end in word_ends(TEXT)]
    assert starts == sorted(starts)
