"""What may be shown, how wide it is, and where its rows break."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bargein.bridge.console._cells import clean, columns, one_line, shorten, wrap

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60).map(clean)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain", "plain"),
        ("a\x1b[31mb\x1b[0mc", "abc"),
        ("a\x1b[2J\x1b[Hb", "ab"),
        ("a\x1b]0;title\x07b", "ab"),
        ("a\x1b]8;;http://x\x1b\\b", "ab"),
        ("a\x1bPq...\x1b\\b", "ab"),
        ("a\x9b31mb", "ab"),
        ("a\x1bcb", "ab"),
        ("a\x1b", "a"),
        ("a\x1b[", "a"),
        ("a\x07\x08\x00b", "ab"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("a\tb", "a    b"),
        ("safe\u202egnp.exe", "safegnp.exe"),
        ("zero\u200bwidth\ufeff\u2066x", "zerowidthx"),
        ("\U000e0041tagged", "tagged"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_clean(text, cleaned):
    """Nothing is left that a terminal would obey or that would hide what is shown."""
    assert clean(text) == cleaned


@given(st.text())
def test_anything_is_cleaned(text):
    """Whatever comes in, only characters that are shown, and newlines, come out."""
    cleaned = clean(text)
    assert all(c == "\n" or unicodedata.category(c) not in ("Cc", "Cs") for c in cleaned)
    assert clean(cleaned) == cleaned
    cleaned.encode()


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("🙂", 2), ("", 0)]
)
def test_columns(text, width):
    """A wide character takes two columns, a mark none."""
    assert columns(text) == width


def test_wrap():
    """Rows break between words where there are some, and at newlines."""
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("abcdefghij", 4) == ["abcd", "efgh", "ij"]
    assert wrap("a\n\nb", 4) == ["a", "", "b"]
    assert wrap("日本語", 5) == ["日本", "語"]
    assert wrap("    indented words", 10) == ["    indent", "ed words"]
    assert wrap("", 5) == [""]


@given(TEXTS, st.integers(2, 20))
def test_rows_fit_and_lose_nothing(text, width):
    """No row is wider than the window, and only spaces at breaks are lost."""
    rows = wrap(text, width)
    assert all(columns(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace("\n", "").replace(" ", "")


@given(TEXTS, TEXTS, st.integers(2, 20))
def test_rows_that_stand_do_not_change(text, more, width):
    """What is added to a text changes its last row at most."""
    rows = wrap(text, width)
    assert wrap(text + more, width)[: len(rows) - 1] == rows[:-1]


def test_shorten():
    """A line that is too long ends with an ellipsis within the columns."""
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abcde…"
    assert columns(shorten("日本語日本語", 6)) <= 6


def test_one_line():
    """A text of others becomes one line, and a long one is cut before it is read to its end."""
    assert one_line("a\n b\t\x1b[1mc", 20) == "a b c"
    assert one_line("x" * 10_000_000, 5) == "xxxx…"
