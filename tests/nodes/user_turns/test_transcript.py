"""Words that come in parts and in any order."""

from __future__ import annotations

from bargein.nodes.user_turns._transcript import Transcript, is_old_news, rest_of


def test_words_of_a_segment_replace_each_other():
    """The newest words of a segment count, and segments are joined in order."""
    words = Transcript()
    words.put(1, "latte", final=True)
    words.put(0, "a", final=False)
    words.put(0, " a large ", final=True)
    assert words.text == "a large latte"
    assert words.is_known


def test_a_late_interim_takes_nothing_away():
    """What is final is replaced by more words only."""
    words = Transcript()
    words.put(0, "a large latte", final=True)
    words.put(0, "a large", final=False)
    assert (words.text, words.is_known) == ("a large latte", True)
    words.put(0, "a large latte please", final=False)
    assert (words.text, words.is_known) == ("a large latte please", False)


def test_words_are_known_when_all_is_final_and_new():
    """A further sound makes them unknown again."""
    words = Transcript()
    assert not words.is_known
    words.put(0, "a", final=True)
    words.put(1, "latte", final=False)
    assert not words.is_known
    words.put(1, "latte", final=True)
    assert words.is_known
    words.sound_began()
    assert not words.is_known


def test_confidence_is_that_of_the_weakest_part():
    """Empty parts do not count; a part without one leaves none."""
    words = Transcript()
    assert words.confidence is None
    words.put(0, "a", final=True, confidence=0.9)
    words.put(1, "", final=True)
    words.put(2, "latte", final=True, confidence=0.7)
    assert words.confidence == 0.7
    words.put(3, "please", final=True)
    assert words.confidence is None


def test_old_news_is_the_beginning_of_what_was_told():
    """Letter case and punctuation do not make words new."""
    assert is_old_news("A large", "a large latte.")
    assert is_old_news("", "anything")
    assert not is_old_news("large latte", "a large latte")


def test_the_rest_of_words_that_were_told():
    """What was told is left out once, and words that differ are told whole."""
    assert rest_of("A large latte.", "a large") == "latte."
    assert rest_of("Mm-hmm, a tea", "mm hmm") == "a tea"
    assert rest_of("a large", "a large") == ""
    assert rest_of("a tea", "a large") == "a tea"
    assert rest_of("a tea", "") == "a tea"
