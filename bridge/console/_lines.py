"""The lines of a conversation on a terminal, and their styles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

Style = Literal["plain", "dim", "bold", "user", "good", "bad", "warn"]

SGR: dict[Style, str] = {
    "plain": "",
    "dim": "2",
    "bold": "1",
    "user": "36",
    "good": "32",
    "bad": "31",
    "warn": "33",
}
"""Parameters of SGR (ECMA-48, 8.3.117).  No meaning depends on colour: each line has a mark."""

_ASCII = str.maketrans(
    {
        "→": "->",
        "✓": "+",
        "✗": "x",
        "■": "#",
        "‖": "=",
        "…": "...",
        "·": "-",
        "—": "-",
        "“": '"',
        "”": '"',
        "│": "|",
    }
)


@dataclass(frozen=True, slots=True)
class ConsoleLine:
    """A permanent line; it may be wider than the terminal.

    Attributes:
        text: Its text, without control sequences.
        style: Its style.
        prefix: A mark before it; further rows are indented by its width.
    """

    text: str
    style: Style = "plain"
    prefix: str = ""


class Display(Protocol):
    """Shows a conversation.  None of its methods waits."""

    def show(self, line: ConsoleLine) -> None:
        """Add a permanent line."""

    def write(self, text: str) -> None:
        """Add to the agent's current line; the text must be cleaned."""

    def end(self) -> None:
        """End the agent's current line, if there is one."""

    def refresh(self) -> None:
        """Redraw, because the current work has changed."""


def encodable(text: str, encoding: str) -> str:
    """Return a text for an encoding, with ASCII in place of marks that it lacks."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_ASCII).encode(encoding, "replace").decode(encoding)
    return text


def seconds(value: float) -> str:
    """Return a duration for a person: ``3.2 s``, ``1:05``."""
    if value < 60:
        return f"{value:.1f} s"
    minutes, rest = divmod(int(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
