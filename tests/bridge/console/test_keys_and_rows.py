"""The console's pure core: bytes become keys, keys a line, text rows, and rows a drawing.

The program that is made of these is tested in real terminals, key by key, where it takes a second
each; hypothesis tries thousands of orders here.
"""

import math
import unicodedata

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bargein.bridge.commands._terminal_text import clean, columns, one_line, shorten, wrap
from bargein.bridge.console._editor import MAX_HISTORY, LineEditor
from bargein.bridge.console._key_parser import LONE_ESC_S, MAX_PASTE, SEQUENCE_S, Key, KeyParser
from bargein.bridge.console._lines import ConsoleLine
from bargein.bridge.console._screen import (
    LivePart,
    PermanentLines,
    Row,
    ScreenPainter,
    frame_of,
    rows_of,
)

# --- bytes become keys, however they are cut ------------------------------------------------------


KEYS = {
    b"\r": "enter",
    b"\n": "ctrl+j",
    b"\t": "tab",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x01": "ctrl+a",
    b"\x17": "ctrl+w",
    b"\x1a": "ctrl+z",
    b"\x00": "ctrl+space",
    b"\x1f": "unknown",
    b"\x1b[A": "up",
    b"\x1bOA": "up",
    b"\x1b[D": "left",
    b"\x1b[1;5D": "ctrl+left",
    b"\x1b[1;3C": "alt+right",
    b"\x1b\x1b[C": "alt+right",
    b"\x1b[H": "home",
    b"\x1b[1~": "home",
    b"\x1b[4~": "end",
    b"\x1b[3~": "delete",
    b"\x1b[3;5~": "ctrl+delete",
    b"\x1b[15~": "unknown",
    b"\x1bOP": "unknown",
    b"\x1b[I": "unknown",
    b"\x1b[24;80R": "unknown",
    b"\x1b[<0;10;10M": "unknown",
    b"\x1bb": "alt+b",
    b"\x1b\x7f": "alt+backspace",
    b"\x1b\r": "alt+enter",
    b"\x1b\xc3\xa9": "alt+é",
    b"\xc2\x9b": "unknown",
}


def keys_of(*pieces: bytes) -> list[Key]:
    """Return the keys of bytes that come in pieces, without a pause."""
    parser = KeyParser()
    return [key for piece in pieces for key in parser.feed(piece)]


@pytest.mark.parametrize(("data", "name"), KEYS.items())
def test_a_key(data, name):
    """Each key is told by its bytes, and nothing of it is left."""
    parser = KeyParser()
    assert [key.name for key in parser.feed(data)] == [name]
    assert parser.patience_s == math.inf
    assert parser.feed(b"x") == [Key("text", "x")]


@pytest.mark.parametrize("text", ["a", "é", "日", "🙂", " "])
def test_text(text):
    """A character is itself, whatever its length in bytes."""
    assert keys_of(text.encode()) == [Key("text", text)]


PIECES = st.one_of(st.binary(max_size=6), st.sampled_from([*KEYS, b"\x1b[200~", b"\x1b[201~"]))


@given(st.lists(PIECES), st.data())
@example([b"\x1b[200~a\x1b", b"[201~b"], None)
def test_pieces_do_not_matter(parts, data):
    """However the bytes are cut, the keys are the same."""
    whole = b"".join(parts)
    size = len(whole)
    cuts = [] if data is None else sorted(data.draw(st.lists(st.integers(0, size), max_size=8)))
    cuts = cuts or list(range(size))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    one, many = KeyParser(), KeyParser()
    told = one.feed(whole)
    assert [key for piece in pieces for key in many.feed(piece)] == told
    assert one.patience_s == many.patience_s
    assert one.expire() == many.expire()


@given(st.binary(max_size=60))
def test_any_bytes_are_taken(data):
    """No bytes fail, and after a pause nothing waits but the end of a paste."""
    parser = KeyParser()
    parser.feed(data)
    parser.expire()
    if not data.count(b"\x1b[200~"):
        assert parser.patience_s == math.inf


def test_a_lone_esc():
    """An Esc is one after a pause alone."""
    parser = KeyParser()
    assert parser.feed(b"\x1b") == []
    assert parser.patience_s == LONE_ESC_S
    assert parser.expire() == [Key("esc")]
    assert parser.expire() == []


def test_esc_twice():
    """Two Esc are two; with a third the first is certain."""
    parser = KeyParser()
    parser.feed(b"\x1b\x1b")
    assert parser.patience_s == LONE_ESC_S
    assert parser.expire() == [Key("esc"), Key("esc")]
    assert KeyParser().feed(b"\x1b\x1b\x1b") == [Key("esc")]


@pytest.mark.parametrize("begun", [b"\x1b[", b"\x1b[1;", b"\x1bO", b"\xe6\x97"])
def test_half_a_sequence(begun):
    """Half a sequence is no Esc: it waits longer for its rest, and is nothing without it."""
    parser = KeyParser()
    assert parser.feed(begun) == []
    assert parser.patience_s == SEQUENCE_S
    assert parser.expire() == [Key("unknown")]


def test_a_paste_is_text():
    """Within a paste no byte is a key, and it has all the time it takes."""
    parser = KeyParser()
    assert parser.feed(b"\x1b[200~one\r\x1b\x03two\x1b[A") == []
    assert parser.patience_s == math.inf
    assert parser.expire() == []
    assert parser.feed(b"\x1b[201~x") == [
        Key("paste", "one\r\x1b\x03two\x1b[A"),
        Key("text", "x"),
    ]


def test_a_paste_without_end():
    """A paste that does not end is handed on in parts, and can be left."""
    parser = KeyParser()
    [part] = parser.feed(b"\x1b[200~" + b"x" * (MAX_PASTE + 20))
    assert part == Key("paste", "x" * MAX_PASTE)
    parser.reset()
    assert parser.feed(b"a") == [Key("text", "a")]


@pytest.mark.parametrize("data", [b"\xff", b"\xc3(", b"\xe6\x97x", b"\x80", b"\xf8"])
def test_bytes_that_are_no_text(data):
    """What is no UTF-8 is shown as such, and what follows it is not lost."""
    keys = keys_of(data + b"ok")
    assert keys[0] == Key("text", "\ufffd")
    assert "".join(key.text for key in keys).endswith("ok")


# --- keys become a line ---------------------------------------------------------------------------


def after_keys(*keys: str, editor: LineEditor | None = None) -> LineEditor:
    """Return an editor after keys: names in angle brackets, else text."""
    editor = editor or LineEditor()
    for key in keys:
        if key.startswith("<"):
            assert editor.press(Key(key[1:-1])), key
        else:
            for character in key:
                editor.press(Key("text", character))
    return editor


def with_cursor(editor: LineEditor) -> str:
    """Return the text with the cursor in it."""
    return f"{editor.text[: editor.cursor]}|{editor.text[editor.cursor :]}"


@pytest.mark.parametrize(
    ("keys", "result"),
    [
        (["abc"], "abc|"),
        (["abc", "<left>", "x"], "abx|c"),
        (["abc", "<home>", "x", "<end>", "y"], "xabcy|"),
        (["abc", "<ctrl+a>", "<right>", "<ctrl+f>", "<ctrl+b>", "-"], "a-|bc"),
        (["abc", "<backspace>"], "ab|"),
        (["abc", "<home>", "<backspace>", "<delete>"], "|bc"),
        (["abc", "<left>", "<ctrl+d>", "<ctrl+d>"], "ab|"),
        (["one two", "<ctrl+w>"], "one |"),
        (["one two ", "<alt+backspace>", "<ctrl+y>", "<ctrl+y>"], "one two two |"),
        (["one two", "<home>", "<alt+d>"], "| two"),
        (["one two", "<alt+b>", "<ctrl+k>"], "one |"),
        (["one two", "<alt+b>", "<ctrl+u>"], "|two"),
        (["one, two", "<ctrl+left>", "<alt+left>"], "|one, two"),
        (["one, two", "<home>", "<alt+f>", "<ctrl+right>"], "one, two|"),
        (["a", "<alt+enter>", "b", "<ctrl+j>", "c"], "a\nb\nc|"),
        (["abc", "<ctrl+j>", "defg", "<up>", "x"], "abcx|\ndefg"),
        (["abc", "<ctrl+j>", "d", "<up>", "<home>", "<down>", "x"], "abc\nx|d"),
        (["abc", "<ctrl+j>", "d", "<up>", "<down>"], "abc\nd|"),
        (["ab", "<ctrl+j>", "c", "<home>", "<left>", "<ctrl+k>"], "ab|c"),
        (["日本", "<left>", "<backspace>"], "|本"),
        (["e\u0301x", "<left>", "<left>", "-"], "-|e\u0301x"),
        (["xe\u0301", "<backspace>"], "x|"),
        (["a👩\u200d👧b", "<left>", "<backspace>"], "a|b"),
    ],
)
def test_editing(keys, result):
    """Keys move and change as in other line editors."""
    assert with_cursor(after_keys(*keys)) == result


@pytest.mark.parametrize("name", ["enter", "esc", "unknown", "tab", "alt+x", "ctrl+t", "pageup"])
def test_other_keys_do_nothing(name):
    """What is no key of an editor changes nothing, and that is told."""
    editor = after_keys("abc")
    assert not editor.press(Key(name))
    assert with_cursor(editor) == "abc|"


def test_a_paste_is_cleaned():
    """What is pasted keeps its lines and loses what a terminal would obey."""
    editor = after_keys("a")
    editor.press(Key("paste", "one\r\ntwo\rthree\x1b[31m\t\x07end"))
    assert editor.text == "aone\ntwo\nthree    end"


def test_history():
    """Up and down go through what was entered, and back to what was being typed."""
    editor = LineEditor()
    editor.remember(["from before"])
    for entry in ("one", "two", "two"):
        assert after_keys(entry, editor=editor).submit() == entry
    after_keys("dra", "<up>", editor=editor)
    assert with_cursor(editor) == "two|"
    assert with_cursor(after_keys("<up>", editor=editor)) == "one|"
    assert with_cursor(after_keys("<up>", "<up>", editor=editor)) == "from before|"
    assert with_cursor(after_keys("<down>", "<down>", "<down>", "<down>", editor=editor)) == "dra|"


def test_the_history_is_bounded():
    """The oldest entries are forgotten."""
    editor = LineEditor()
    for number in range(MAX_HISTORY + 10):
        after_keys(f"entry {number}", editor=editor).submit()
    after_keys(*["<up>"] * (MAX_HISTORY + 20), editor=editor)
    assert editor.text == "entry 10"


def test_what_is_cleared_can_be_brought_back():
    """A cleared line is not lost."""
    editor = after_keys("precious")
    editor.clear()
    assert with_cursor(editor) == "|"
    assert with_cursor(after_keys("<ctrl+y>", editor=editor)) == "precious|"


KEY_NAMES = ["left", "right", "home", "end", "up", "down", "backspace", "delete", "ctrl+k",
             "ctrl+u", "ctrl+w", "alt+d", "alt+b", "alt+f", "ctrl+y", "ctrl+j"]  # fmt: skip


@pytest.mark.proof
@given(st.lists(st.one_of(st.sampled_from(KEY_NAMES), st.text(max_size=3).map(lambda t: f"={t}"))))
def test_the_cursor_is_always_in_the_text(keys):
    """Whatever is pressed, the cursor stays in the text, and never within a joined character."""
    editor = LineEditor()
    for key in keys:
        editor.press(Key("paste", key[1:]) if key.startswith("=") else Key(key))
        assert 0 <= editor.cursor <= len(editor.text)


# --- text becomes rows ----------------------------------------------------------------------------


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


# --- rows become a drawing ------------------------------------------------------------------------


def frame_rows(live: LivePart, width: int, height: int) -> list[str]:
    """Return the rows of a frame, with the cursor in them."""
    frame = frame_of(live, width, height)
    rows = [row.text for row in frame.rows]
    row, at = frame.cursor_row, frame.cursor_column
    rows[row] = f"{rows[row][:at].ljust(at)}|{rows[row][at:]}"
    return rows


def test_a_line_is_indented_below_its_mark():
    """The rows of a long line stand below each other, behind the mark."""
    rows = rows_of(ConsoleLine("one two three", "good", "✓ "), 9)
    assert rows == [Row("✓ one two", "good"), Row("  three", "good")]


def test_the_entry_and_the_status():
    """The entry stands behind its prompt, the status is the last row."""
    live = LivePart([ConsoleLine("above")], "hello", 2, "idle")
    assert frame_rows(live, 20, 10) == ["above", "> he|llo", "idle"]


def test_an_entry_of_several_lines():
    """Lines of an entry stand below each other, and a full row is followed by another."""
    assert frame_rows(LivePart(entry="ab\ncd", cursor=2), 10, 9) == ["> ab|", "  cd", ""]
    assert frame_rows(LivePart(entry="ab\ncd", cursor=3), 10, 9) == ["> ab", "  |cd", ""]
    assert frame_rows(LivePart(entry="abcdef", cursor=6), 8, 9) == ["> abcdef", "  |", ""]
    assert frame_rows(LivePart(entry="abcdefg", cursor=6), 8, 9) == ["> abcdef", "  |g", ""]
    frame = frame_of(LivePart(entry="日本語", cursor=3), 7, 9)
    assert [row.text for row in frame.rows] == ["> 日本", "  語", ""]
    assert (frame.cursor_row, frame.cursor_column) == (1, 4)


def test_a_small_window_shows_what_matters():
    """The row of the cursor always fits, then the status, then the lines next to the entry."""
    live = LivePart([ConsoleLine("one"), ConsoleLine("two")], "a\nb\nc\nd", 7, "idle")
    assert frame_rows(live, 10, 6) == ["two", "> a", "  b", "  c", "  d|", "idle"]
    assert frame_rows(live, 10, 3) == ["  c", "  d|", "idle"]
    assert frame_rows(live, 10, 1) == ["  d|"]
    assert frame_rows(LivePart([ConsoleLine("one"), ConsoleLine("two")], "", 0, "idle"), 10, 3) == [
        "two",
        "> |",
        "idle",
    ]


def test_text_that_grows_stands_once_it_is_whole():
    """A row of the text that is generated stands once no more text can change it."""
    transcript = PermanentLines()
    transcript.write("one two ")
    assert transcript.pop_rows(8) == []
    transcript.write("three fo")
    assert transcript.pop_rows(8) == [Row("one two")]
    assert transcript.growing_line(8) == [ConsoleLine("three fo")]
    transcript.write("ur\nlast")
    assert transcript.pop_rows(8) == [Row("three"), Row("four")]
    transcript.show(ConsoleLine("tool", "dim", "→ "))
    assert transcript.pop_rows(8) == [Row("last"), Row("→ tool", "dim")]
    rows = transcript.all_rows(20, 3)
    assert [row.text for row in rows] == ["one two three four", "last", "→ tool"]


def test_a_drawing_that_changes_nothing_is_empty():
    """What is on the terminal already is not sent again."""
    painter = ScreenPainter(color=False)
    frame = frame_of(LivePart(status="idle"), 20, 5)
    assert painter.paint([], frame)
    assert painter.paint([], frame) == ""
    painter.forget()
    assert painter.paint([], frame)


def test_colour():
    """Rows have colour where that is wanted, and say the same without it."""
    rows, frame = [Row("✓ done", "good")], frame_of(LivePart(status="idle"), 20, 5)
    assert "\x1b[32m✓ done\x1b[0m" in ScreenPainter(color=True).paint(rows, frame)
    assert "m" not in ScreenPainter(color=False).paint(rows, frame).replace("✓", "")


def test_a_terminal_that_knows_ascii_only():
    """Marks of ours have a form in ASCII."""
    drawing = ScreenPainter(color=False, encoding="ascii").paint(
        [Row("→ tool · 1 s"), Row("■日")], frame_of(LivePart(), 20, 5)
    )
    assert "-> tool - 1 s" in drawing
    assert "#?" in drawing


SAMPLE = st.text("ab cdefgh日本é \n", max_size=30)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), SAMPLE),
        st.tuples(st.just("show"), SAMPLE),
        st.tuples(st.just("type"), SAMPLE),
        st.tuples(st.just("lines"), st.lists(SAMPLE, max_size=3)),
        st.tuples(st.just("size"), st.tuples(st.integers(8, 30), st.integers(3, 10))),
        st.tuples(st.just("leave"), st.none()),
    ),
    max_size=25,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it gives a class
@given(steps=STEPS)
def test_the_window_is_what_was_said(emulator, steps):
    """Whatever happens, the window ends with the frame, and above it is all that was said."""
    terminal, painter, transcript, live = (
        emulator(24, 6),
        ScreenPainter(color=True),
        PermanentLines(),
        LivePart(),
    )
    anew = True
    for what, value in steps:
        match what:
            case "write":
                transcript.write(clean(value))
            case "show":
                transcript.show(ConsoleLine(clean(value), "dim", "→ "))
            case "type":
                live = LivePart(live.lines, clean(value), len(value) // 2, live.status)
            case "lines":
                live = LivePart(
                    [ConsoleLine(clean(v)) for v in value], live.entry, live.cursor, "status"
                )
            case "size":
                terminal.resize(*value)
                anew = True
            case "leave":
                terminal.feed(painter.leave(transcript.pop_rows(terminal.columns - 1)))
        width = terminal.columns - 1
        now = LivePart([*transcript.growing_line(width), *live.lines], live.entry, live.cursor,
                   live.status)  # fmt: skip
        frame = frame_of(now, width, terminal.rows)
        if anew:
            anew = False
            rows = transcript.all_rows(width, terminal.rows - len(frame.rows))
            terminal.feed(painter.paint_all(rows, frame))
        else:
            terminal.feed(painter.paint(transcript.pop_rows(width), frame))
        said = transcript.all_rows(width, 100)
        wanted = [row.text.rstrip() for row in (*said, *frame.rows)][-terminal.rows :]
        while wanted and not wanted[-1]:
            wanted.pop()
        lines = terminal.lines()  # fewer, after a frame became smaller: nothing scrolls back
        assert lines == wanted[len(wanted) - len(lines) :]
        assert not terminal.strange
        assert all(columns(row) < terminal.columns for row in terminal.lines())
        cursor = terminal.grid[terminal.row]
        assert "".join(cursor).rstrip() == frame.rows[frame.cursor_row].text.rstrip()
        assert terminal.column == frame.cursor_column
