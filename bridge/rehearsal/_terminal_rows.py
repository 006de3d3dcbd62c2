"""Rows on a terminal, optionally coloured, never wider than the terminal."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from typing import Literal, TextIO, final

from ..commands._terminal_text import clean, columns, wrap
from ..console._lines import encodable

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

_NARROWEST = 40


@final
class TerminalRows:
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
        """Write a permanent row; a long text continues on further rows."""
        self._erase()
        indent = sum(columns(part) for part, _ in label)
        first, *rest = wrap(_one_line(text), max(10, self.width - indent - 1))
        self._write(f"{self._joined(label)}{self._styled(first, style)}\n")
        for line in rest:
            self._write(f"{' ' * indent}{self._styled(line, style)}\n")

    def draft(self, label: Sequence[tuple[str, Style]], text: str, style: Style = "plain") -> None:
        """Write a row that the next one replaces; only on a terminal."""
        if not self.live:
            return
        indent = sum(columns(part) for part, _ in label)
        shown = _last_columns(text, max(10, self.width - indent - 1))
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
        self._stream.write(encodable(text, getattr(self._stream, "encoding", None) or "utf-8"))
        self._stream.flush()


def _one_line(text: str) -> str:
    """Return a foreign text on one line, without anything that a terminal would execute."""
    return " ".join(clean(text).split())


def _last_columns(text: str, width: int) -> str:
    """Return a text, or an ellipsis and its end if it is too long."""
    text = _one_line(text)
    if columns(text) <= width:
        return text
    while text and columns(text) > width - 1:
        text = text[1:]
    return f"…{text}"
