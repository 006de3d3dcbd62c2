"""The console as rows: the permanent rows, and the live part below them; no output.

Permanent rows scroll away like any text of a terminal.  Only the live part is ever overwritten.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..commands._terminal_text import columns, shorten, width_of, wrap
from ._lines import SGR, ConsoleLine, Style, encodable

KEPT_LINES = 1000
"""How many lines are redrawn when the window changes; no window shows more."""

PROMPT = "> "
LESS_PROMPT = "  "


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the terminal."""

    text: str
    style: Style = "plain"


@dataclass(frozen=True, slots=True)
class LivePart:
    """The live part: lines, the entry being typed, and the status.

    Attributes:
        lines: The lines above the entry.
        entry: The text being typed.
        cursor: The index of the cursor in it.
        status: The line below the entry.
    """

    lines: Sequence[ConsoleLine] = ()
    entry: str = ""
    cursor: int = 0
    status: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """The rows of the live part, with the position of the cursor."""

    rows: tuple[Row, ...]
    cursor_row: int
    cursor_column: int


@dataclass(slots=True)
class PermanentLines:
    """The permanent lines, the last of which may still grow."""

    lines: deque[ConsoleLine] = field(default_factory=lambda: deque(maxlen=KEPT_LINES))
    fresh: list[ConsoleLine] = field(default_factory=list)
    """Lines that were not drawn yet."""
    growing: str = ""
    """The text of the growing line."""
    drawn_rows: int = 0
    """How many of its rows are permanent."""

    def show(self, line: ConsoleLine) -> None:
        """Add a line; this ends the growing one."""
        self.end()
        self._add(line)

    def end(self) -> None:
        if self.growing:
            self.write("\n")

    def write(self, text: str) -> None:
        *whole, self.growing = (self.growing + text).split("\n")
        for line in whole:
            self._add(ConsoleLine(line))

    def _add(self, line: ConsoleLine) -> None:
        self.lines.append(line)
        self.fresh.append(line)

    def pop_rows(self, width: int) -> list[Row]:
        """Return the rows that became permanent since the last call."""
        rows: list[Row] = []
        for line in self.fresh:
            rows += rows_of(line, width)
        self.fresh.clear()
        standing = wrap(self.growing, width)[:-1]
        # If the growing line ended since then, its rows come first.
        rows += [Row(text) for text in standing]
        taken, self.drawn_rows = rows[self.drawn_rows :], len(standing)
        return taken

    def all_rows(self, width: int, height: int) -> list[Row]:
        """Return the last permanent rows again, for a window of another size."""
        self.fresh.clear()
        rows = [Row(text) for text in wrap(self.growing, width)[:-1]]
        self.drawn_rows = len(rows)
        for line in reversed(self.lines):
            if len(rows) >= height:
                break
            rows = rows_of(line, width) + rows
        return rows[-height:] if height > 0 else []

    def growing_line(self, width: int) -> list[ConsoleLine]:
        """Return the row of the growing line that is not permanent yet."""
        return [ConsoleLine(wrap(self.growing, width)[-1])] if self.growing else []


def rows_of(line: ConsoleLine, width: int) -> list[Row]:
    """Return a line as rows of at most this many columns."""
    indent = columns(line.prefix)
    texts = wrap(line.text, max(2, width - indent))
    first, *rest = texts
    pad = " " * indent
    return [Row(line.prefix + first, line.style), *(Row(pad + text, line.style) for text in rest)]


def frame_of(live: LivePart, width: int, height: int) -> Frame:
    """Return the live part as rows that fit the window.

    Args:
        width: Columns, at least 4.
        height: Rows, at least 1.  The row with the cursor is always shown; then the status,
            then the lines nearest to the entry.
    """
    entry, cursor_row, cursor_column = _entry_rows(live.entry, live.cursor, width)
    room = max(1, height - (1 if height > 1 else 0))
    first = min(max(0, cursor_row - room + 1), max(0, len(entry) - room))
    entry, cursor_row = entry[first : first + room], cursor_row - first
    above: list[Row] = []
    for line in live.lines:
        above += rows_of(line, width)
    room -= len(entry)
    above = above[-room:] if room > 0 else []
    status = [Row(shorten(live.status, width), "dim")] if height > 1 else []
    return Frame((*above, *entry, *status), len(above) + cursor_row, cursor_column)


def _entry_rows(text: str, cursor: int, width: int) -> tuple[list[Row], int, int]:
    """Return the entry, wrapped at exactly this width, and the cursor's row and column."""
    indent = columns(PROMPT)
    rows, used, at = [PROMPT], indent, (0, indent)
    for index, character in enumerate(text):
        size = width_of(character)
        if character == "\n" or used + size > width:
            if index == cursor and character == "\n":
                at = (len(rows) - 1, used)
            rows.append(LESS_PROMPT)
            used = indent
        if index == cursor and character != "\n":
            at = (len(rows) - 1, used)
        if character != "\n":
            rows[-1] += character
            used += size
    if cursor >= len(text):
        if used >= width:
            rows.append(LESS_PROMPT)
            used = indent
        at = (len(rows) - 1, used)
    return [Row(row) for row in rows], *at


class ScreenPainter:
    """Produces the output that shows rows on a terminal, and tracks its cursor.

    It uses CR, LF, ECMA-48's ED, EL, CUU, CUF, CUP and SGR, and DEC's private mode 25.
    """

    def __init__(self, *, color: bool, encoding: str = "utf-8") -> None:
        """Start below the terminal's content."""
        self._color = color
        self._encoding = encoding
        self._shown: Frame | None = None

    def paint(self, standing: Sequence[Row], frame: Frame) -> str:
        """Return the output that adds permanent rows, and a frame below them.

        Args:
            frame: The live part; it overwrites the previous one.
        """
        if not standing and frame == self._shown:
            return ""
        return f"\x1b[?25l{self._to_top()}{self._rows(standing, frame)}\x1b[?25h"

    def paint_all(self, standing: Sequence[Row], frame: Frame) -> str:
        """Return the output that clears the window and shows everything again."""
        return f"\x1b[?25l\x1b[H\x1b[2J{self._rows(standing, frame)}\x1b[?25h"

    def leave(self, standing: Sequence[Row] = ()) -> str:
        """Return the output that removes the live part, and leaves the cursor there."""
        out = self._to_top() + "".join(f"{self._row(row)}\x1b[K\r\n" for row in standing)
        self._shown = None
        return f"{out}\x1b[J"

    def forget(self) -> None:
        """Record that the cursor is at the start of a row written by other programs."""
        self._shown = None

    def _to_top(self) -> str:
        up = 0 if self._shown is None else self._shown.cursor_row
        return f"\r\x1b[{up}A" if up else "\r"

    def _rows(self, standing: Sequence[Row], frame: Frame) -> str:
        self._shown = frame
        rows = "\x1b[K\r\n".join(self._row(row) for row in (*standing, *frame.rows))
        up = len(frame.rows) - 1 - frame.cursor_row
        back = (f"\x1b[{up}A" if up else "") + "\r"
        right = f"\x1b[{frame.cursor_column}C" if frame.cursor_column else ""
        return f"{rows}\x1b[J{back}{right}"

    def _row(self, row: Row) -> str:
        text = encodable(row.text, self._encoding)
        code = SGR[row.style]
        return f"\x1b[{code}m{text}\x1b[0m" if code and self._color and text else text
