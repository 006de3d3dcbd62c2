"""Where the last word that was heard begins in its audio."""

from __future__ import annotations

import pytest

from bargein.bridge.playout._resume_point import last_word_start_s
from bargein.bridge.playout._word_timing import word_ends
from bargein.events import WordTiming

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
