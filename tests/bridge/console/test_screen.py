"""Rows and frames, shown on a terminal that obeys only what it must."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bargein.bridge.console._cells import clean, columns
from bargein.bridge.console._lines import Line
from bargein.bridge.console._screen import Live, Painter, Row, Transcript, frame_of, rows_of


def shown(live: Live, width: int, height: int) -> list[str]:
    """Return the rows of a frame, with the cursor in them."""
    frame = frame_of(live, width, height)
    rows = [row.text for row in frame.rows]
    row, at = frame.cursor_row, frame.cursor_column
    rows[row] = f"{rows[row][:at].ljust(at)}|{rows[row][at:]}"
    return rows


def test_a_line_is_indented_below_its_mark():
    """The rows of a long line stand below each other, behind the mark."""
    rows = rows_of(Line("one two three", "good", "✓ "), 9)
    assert rows == [Row("✓ one two", "good"), Row("  three", "good")]


def test_the_entry_and_the_status():
    """The entry stands behind its prompt, the status is the last row."""
    live = Live([Line("above")], "hello", 2, "idle")
    assert shown(live, 20, 10) == ["above", "> he|llo", "idle"]


def test_an_entry_of_several_lines():
    """Lines of an entry stand below each other, and a full row is followed by another."""
    assert shown(Live(entry="ab\ncd", cursor=2), 10, 9) == ["> ab|", "  cd", ""]
    assert shown(Live(entry="ab\ncd", cursor=3), 10, 9) == ["> ab", "  |cd", ""]
    assert shown(Live(entry="abcdef", cursor=6), 8, 9) == ["> abcdef", "  |", ""]
    assert shown(Live(entry="abcdefg", cursor=6), 8, 9) == ["> abcdef", "  |g", ""]
    frame = frame_of(Live(entry="日本語", cursor=3), 7, 9)
    assert [row.text for row in frame.rows] == ["> 日本", "  語", ""]
    assert (frame.cursor_row, frame.cursor_column) == (1, 4)


def test_a_small_window_shows_what_matters():
    """The row of the cursor always fits, then the status, then the lines next to the entry."""
    live = Live([Line("one"), Line("two")], "a\nb\nc\nd", 7, "idle")
    assert shown(live, 10, 6) == ["two", "> a", "  b", "  c", "  d|", "idle"]
    assert shown(live, 10, 3) == ["  c", "  d|", "idle"]
    assert shown(live, 10, 1) == ["  d|"]
    assert shown(Live([Line("one"), Line("two")], "", 0, "idle"), 10, 3) == ["two", "> |", "idle"]


def test_text_that_grows_stands_once_it_is_whole():
    """A row of the text that is generated stands once no more text can change it."""
    transcript = Transcript()
    transcript.write("one two ")
    assert transcript.take_rows(8) == []
    transcript.write("three fo")
    assert transcript.take_rows(8) == [Row("one two")]
    assert transcript.growing_line(8) == [Line("three fo")]
    transcript.write("ur\nlast")
    assert transcript.take_rows(8) == [Row("three"), Row("four")]
    transcript.show(Line("tool", "dim", "→ "))
    assert transcript.take_rows(8) == [Row("last"), Row("→ tool", "dim")]
    rows = transcript.all_rows(20, 3)
    assert [row.text for row in rows] == ["one two three four", "last", "→ tool"]


def test_a_drawing_that_changes_nothing_is_empty():
    """What is on the terminal already is not sent again."""
    painter = Painter(color=False)
    frame = frame_of(Live(status="idle"), 20, 5)
    assert painter.paint([], frame)
    assert painter.paint([], frame) == ""
    painter.forget()
    assert painter.paint([], frame)


def test_colour():
    """Rows have colour where that is wanted, and say the same without it."""
    rows, frame = [Row("✓ done", "good")], frame_of(Live(status="idle"), 20, 5)
    assert "\x1b[32m✓ done\x1b[0m" in Painter(color=True).paint(rows, frame)
    assert "m" not in Painter(color=False).paint(rows, frame).replace("✓", "")


def test_a_terminal_that_knows_ascii_only():
    """Marks of ours have a form in ASCII."""
    drawing = Painter(color=False, encoding="ascii").paint(
        [Row("→ tool · 1 s"), Row("■日")], frame_of(Live(), 20, 5)
    )
    assert "-> tool - 1 s" in drawing
    assert "#?" in drawing


TEXT = st.text("ab cdefgh日本é \n", max_size=30)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), TEXT),
        st.tuples(st.just("show"), TEXT),
        st.tuples(st.just("type"), TEXT),
        st.tuples(st.just("lines"), st.lists(TEXT, max_size=3)),
        st.tuples(st.just("size"), st.tuples(st.integers(8, 30), st.integers(3, 10))),
        st.tuples(st.just("leave"), st.none()),
    ),
    max_size=25,
)


@settings(
    deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # it gives a class
@given(steps=STEPS)
def test_the_window_is_what_was_said(emulator, steps):
    """Whatever happens, the window ends with the frame, and above it is all that was said."""
    terminal, painter, transcript, live = emulator(24, 6), Painter(color=True), Transcript(), Live()
    anew = True
    for what, value in steps:
        match what:
            case "write":
                transcript.write(clean(value))
            case "show":
                transcript.show(Line(clean(value), "dim", "→ "))
            case "type":
                live = Live(live.lines, clean(value), len(value) // 2, live.status)
            case "lines":
                live = Live([Line(clean(v)) for v in value], live.entry, live.cursor, "status")
            case "size":
                terminal.resize(*value)
                anew = True
            case "leave":
                terminal.feed(painter.leave(transcript.take_rows(terminal.columns - 1)))
        width = terminal.columns - 1
        now = Live([*transcript.growing_line(width), *live.lines], live.entry, live.cursor,
                   live.status)  # fmt: skip
        frame = frame_of(now, width, terminal.rows)
        if anew:
            anew = False
            rows = transcript.all_rows(width, terminal.rows - len(frame.rows))
            terminal.feed(painter.paint_all(rows, frame))
        else:
            terminal.feed(painter.paint(transcript.take_rows(width), frame))
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
