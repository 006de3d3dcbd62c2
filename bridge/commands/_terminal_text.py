"""Text on a terminal: its safe form, its width, and its line breaks."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

TAB = " " * 4

_SEQUENCE = re.compile(
    r"\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, such as a title or a link
    r"|\x1b[PX^_][^\x1b\x9c]*(?:\x1b\\|\x9c)?"  # DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI, such as a colour
    r"|\x1b[ -/]*[0-~]?"  # all others (ECMA-48, 5.3)
)

_KEPT_FORMATS = frozenset("\u200c\u200d")
"""Joiners, which scripts and emoji need.  Other format characters may reorder or hide text, and a
permission question must not read as something else."""


def clean(text: str) -> str:
    """Return a foreign text without anything that a terminal would execute.

    Line ends become newlines, tabs become spaces, and escape sequences are removed as a whole.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n").replace("\t", TAB)
    return "".join(map(_cleaned, text))


@lru_cache(maxsize=4096)
def _cleaned(character: str) -> str:
    if character in "\n\r\v\f\x85\u2028\u2029":
        return "\n"
    category = unicodedata.category(character)
    if category == "Cs":  # a lone surrogate cannot be written
        return "\ufffd"
    if category == "Cc" or (category == "Cf" and character not in _KEPT_FORMATS):
        return ""
    return character


def one_line(text: str, width: int) -> str:
    """Return a foreign text as one line of at most this many columns, cut with an ellipsis."""
    text = " ".join(clean(text[: 8 * width + 64]).split())
    return shorten(text, width)


def shorten(text: str, width: int) -> str:
    """Return a line of at most this many columns, cut with an ellipsis."""
    if columns(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += width_of(character)
        if used > width - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"


def columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(width_of, text))


@lru_cache(maxsize=4096)
def width_of(character: str) -> int:
    """Return the width of a character in columns: 0 for one that joins the previous one."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrap(text: str, width: int) -> list[str]:
    """Return a text as rows of at most this many columns, broken after spaces if possible.

    Appending to a text changes only its last row, and adds rows.

    Args:
        text: The text, cleaned; its newlines start new rows.
        width: Columns, at least 2.
    """
    rows: list[str] = []
    for line in text.split("\n"):
        rows += _wrap_line(line, width)
    return rows


def _wrap_line(line: str, width: int) -> list[str]:
    rows = []
    while columns(line) > width:
        end = _fitting(line, width)
        space = line.rfind(" ", 0, end + 1)
        if space > 0 and line[:space].strip():  # otherwise the word is longer than a row
            rows.append(line[:space])
            line = line[space + 1 :]
        else:
            rows.append(line[:end])
            line = line[end:]
    return [*rows, line]


def _fitting(line: str, width: int) -> int:
    """Return how many characters fit into this many columns, including joined ones."""
    used = 0
    for index, character in enumerate(line):
        used += width_of(character)
        if used > width:
            return max(index, 1)
    return len(line)
