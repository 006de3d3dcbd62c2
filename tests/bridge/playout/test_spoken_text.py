"""Which words of a text a far side has spoken, by what it tells of them."""

import pytest

from bargein.bridge.playout._text_playout import after_stop, after_words, words_before

TEXT = "Sentence one, of two. Sentence two is Here."


@pytest.mark.parametrize(
    ("told", "heard", "expected"),
    [
        ("Sentence one, ", 0, "Sentence one,"),
        ("sentence   one,", 0, "Sentence one,"),
        ("of two.", 13, "Sentence one, of two."),
        ("", 13, "Sentence one,"),
        ("Sentence two is", 0, "Sentence one, of two. Sentence two is"),
        ("is", 0, None),
        ("Sentence three", 0, None),
        ("one, of two.", 11, "Sentence one, of two."),
    ],
)
def test_the_next_words_are_found(told, heard, expected):
    """They follow what was told before; longer ones may come behind a gap, short ones not."""
    chars = after_words(told, TEXT, heard, len(TEXT))
    assert (None if chars is None else TEXT[:chars]) == expected


@pytest.mark.parametrize(
    ("told", "heard", "expected"),
    [
        ("Sentence one, of", 0, "Sentence one, of"),
        ("Sentence", 21, "Sentence one, of two. Sentence"),
        ("Sentence one,", 13, "Sentence one,"),
        ("of", 16, "Sentence one, of"),
        ("", 13, "Sentence one,"),
        ("Sentence one, of two. Sentence two", 13, "Sentence one, of two. Sentence two"),
        ("nobody said this", 13, None),
    ],
)
def test_the_end_of_what_was_heard_is_found(told, heard, expected):
    """At an interruption the far side tells the whole text so far, or its last clause."""
    chars = after_stop(told, TEXT, heard, len(TEXT))
    assert (None if chars is None else TEXT[:chars]) == expected


def test_what_is_said_again_begins_with_a_word():
    """A word of which a part was heard is said again whole; white space counts as heard."""
    assert TEXT[words_before(TEXT, 3) :].startswith("Sentence one")
    assert TEXT[words_before(TEXT, 11) :].startswith("one, of")
    assert TEXT[words_before(TEXT, 14) :].startswith("of two")
    assert words_before(TEXT, len(TEXT)) == len(TEXT)
    assert words_before(TEXT, 0) == 0
