"""Rows on a terminal, optionally coloured, never wider than the terminal."""

from __future__ import annotations

import os
import shutil
import unicodedata
from collections.abc import Sequence
from typing import Literal, TextIO, final

Style = Literal["plain", "dim", "bold", "caller", "agent", "cut", "good", "bad"]

_CODES: dict[Style, str] = {
    "plain": "",
    "dim": "2",
    "bold": "1",
    "caller": "36",
    "agent": "33",
    "cut": "1;35",
    "good": "32",
    "bad": "1;31",
}
"""Parameters of SGR (ECMA-48, 8.3.117)."""

_ASCII = str.maketrans(
    {"“": '"', "”": '"', "…": "...", "—": "-", "✓": "+", "✗": "x", "·": "-", "│": "|"}
)

_NARROWEST = 40


@final
class Terminal:
    """Writes permanent rows, and one last row that may still change.

    On anything but a terminal, a row is written once, when it is final, and without colour.
    """

    def __init__(self, stream: TextIO) -> None:
        """Write to a stream, which stays open."""
        self.live = stream.isatty()
        self._stream = stream
        self._colored = self.live and not os.environ.get("NO_COLOR")  # no-color.org
        self._open_row = ""

    @property
    def width(self) -> int:
        """The number of columns, at least 40; 100 where no terminal says it."""
        columns = shutil.get_terminal_size((100, 24)).columns if self.live else 100
        return max(_NARROWEST, columns)

    def row(self, label: Sequence[tuple[str, Style]], text: str, style: Style = "plain") -> None:
        """Write a permanent row; a long text continues on further rows.

        Args:
            label: The label in front of the text, in parts.
            text: The text.
            style: The style of the text.
        """
        self._erase()
        indent = sum(columns(part) for part, _ in label)
        first, *rest = wrap(text, max(10, self.width - indent - 1)) or [""]
        self._write(f"{self._joined(label)}{self._styled(first, style)}\n")
        for line in rest:
            self._write(f"{' ' * indent}{self._styled(line, style)}\n")

    def draft(self, label: Sequence[tuple[str, Style]], text: str, style: Style = "plain") -> None:
        """Write a row that the next one replaces; only on a terminal."""
        if not self.live:
            return
        indent = sum(columns(part) for part, _ in label)
        shown = last_columns(text, max(10, self.width - indent - 1))
        row = f"{self._joined(label)}{self._styled(shown, style)}"
        if row != self._open_row:
            self._erase()
            self._write(row)
            self._open_row = row

    def close(self) -> None:
        """Remove the last row if it may still change."""
        self._erase()

    def _erase(self) -> None:
        if self._open_row:
            self._write("\r\x1b[2K")
            self._open_row = ""

    def _joined(self, label: Sequence[tuple[str, Style]]) -> str:
        return "".join(self._styled(part, style) for part, style in label)

    def _styled(self, text: str, style: Style) -> str:
        code = _CODES[style]
        return f"\x1b[{code}m{text}\x1b[0m" if self._colored and code and text else text

    def _write(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:
            text = text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
        self._stream.write(text)
        self._stream.flush()


def columns(text: str) -> int:
    """Return the width of a text in columns of a terminal."""
    return sum(_columns_of(character) for character in text)


def _columns_of(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrap(text: str, width: int) -> list[str]:
    """Return a text as lines of at most this many columns, broken between words if possible."""
    lines, line = [], ""
    for word in text.split():
        longer = f"{line} {word}" if line else word
        if columns(longer) <= width:
            line = longer
            continue
        if line:
            lines.append(line)
        *full, line = _pieces(word, width)
        lines += full
    return [*lines, line] if line else lines


def _pieces(word: str, width: int) -> list[str]:
    pieces = [""]
    for character in word:
        if columns(pieces[-1] + character) > width:
            pieces.append("")
        pieces[-1] += character
    return pieces


def last_columns(text: str, width: int) -> str:
    """Return a text, or an ellipsis and its end if it is too long."""
    text = " ".join(text.split())
    if columns(text) <= width:
        return text
    while text and columns(text) > width - 1:
        text = text[1:]
    return f"…{text}"
