"""Tests of rows on a terminal."""

import io

import pytest

from bargein.bridge.rehearsal._terminal import Terminal, columns, last_columns, wrap


def visible(text: str) -> list[str]:
    """Return what stands on a terminal after all was written to it."""
    rows = []
    for row in text.split("\n"):
        rows.append(row.rpartition("\x1b[2K")[2].lstrip("\r"))
    return rows


def test_plain_rows_have_no_escapes() -> None:
    """Where the stream is no terminal rows are written once and without colour."""
    stream = io.StringIO()
    terminal = Terminal(stream)
    terminal.draft([("now ", "dim")], "half a", "agent")
    terminal.row([("now ", "dim")], "half a sentence", "agent")
    terminal.close()
    assert stream.getvalue() == "now half a sentence\n"


def test_a_draft_is_replaced_by_what_comes_next() -> None:
    """On a terminal the last row changes until a row stands."""
    stream = io.StringIO()
    terminal = Terminal(stream, width=60, live=True)
    terminal.draft([], "half a")
    terminal.draft([], "half a sentence")
    terminal.row([], "a whole sentence")
    terminal.draft([], "and more")
    terminal.close()
    assert visible(stream.getvalue()) == ["a whole sentence", ""]


def test_a_draft_that_has_not_changed_is_not_written_again() -> None:
    """Drawing the same row twice writes nothing, so that it does not flicker."""
    stream = io.StringIO()
    terminal = Terminal(stream, width=60, live=True)
    terminal.draft([], "same")
    before = stream.getvalue()
    terminal.draft([], "same")
    assert stream.getvalue() == before


def test_colour_is_there_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal gets colour; NO_COLOR takes it away and leaves the rest."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    stream = io.StringIO()
    Terminal(stream, live=True).row([], "cut", "cut")
    assert stream.getvalue() == "\x1b[1;35mcut\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    stream = io.StringIO()
    Terminal(stream, live=True).row([], "cut", "cut")
    assert stream.getvalue() == "cut\n"


@pytest.mark.parametrize("width", [40, 60, 100])
def test_nothing_is_wider_than_the_terminal(width: int) -> None:
    """Long texts, long words and wide characters are all folded below themselves."""
    stream = io.StringIO()
    terminal = Terminal(stream, width=width)
    terminal.row([("label ", "plain")], "a long text " * 20 + "x" * 150 + " " + "語" * 80)
    rows = stream.getvalue().splitlines()
    assert max(columns(row) for row in rows) <= width - 1
    assert all(row.startswith("      ") for row in rows[1:])


def test_a_long_draft_shows_its_end() -> None:
    """What is being said now is what is seen."""
    stream = io.StringIO()
    Terminal(stream, width=40, live=True).draft([], "word " * 30 + "end")
    assert stream.getvalue().startswith("…")
    assert stream.getvalue().endswith("word end")
    assert columns(stream.getvalue()) <= 39


def test_a_narrow_alphabet_gets_plain_signs() -> None:
    """A stream that cannot write our signs gets others, never an error."""
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii", newline="\n")
    Terminal(stream).row([], "✓ “café” …")
    assert raw.getvalue() == b'+ "caf?" ...\n'


def test_columns_of_wide_and_combining_characters() -> None:
    """A wide character takes two columns, a combining one none."""
    assert [columns(text) for text in ("abc", "語", "e\u0301", "")] == [3, 2, 1, 0]


def test_wrap_breaks_between_words() -> None:
    """Lines break between words, and inside of a word that is wider than the line."""
    assert wrap("one two three", 7) == ["one two", "three"]
    assert wrap("a abcdefgh i", 4) == ["a", "abcd", "efgh", "i"]
    assert wrap("", 10) == []


def test_last_columns_keeps_the_end() -> None:
    """What does not fit is left out at the front."""
    assert last_columns("abcdef", 6) == "abcdef"
    assert last_columns("abcdefg", 6) == "…cdefg"
