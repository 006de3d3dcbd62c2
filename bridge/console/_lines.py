"""What stands in a conversation on a terminal: lines, and in which look."""

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
"""Parameters of SGR (ECMA-48, 8.3.117).  Nothing is told by colour alone: a mark stands before."""

_ASCII = str.maketrans(
    {
        "→": "->",
        "✓": "+",
        "✗": "x",
        "■": "#",
        "‖": "=",
        "…": "...",
        "·": "-",
        "“": '"',
        "”": '"',
        "│": "|",
    }
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line that stands; it may be longer than the terminal is wide.

    Attributes:
        text: What it says, cleaned of what a terminal would obey.
        style: Its look.
        prefix: A mark before it; rows after the first are indented by as much.
    """

    text: str
    style: Style = "plain"
    prefix: str = ""


class Display(Protocol):
    """Where a conversation is shown.  None of its methods waits."""

    def show(self, line: Line) -> None:
        """Add a line that stands."""

    def write(self, text: str) -> None:
        """Add to what the agent says, which goes on in the same line; already cleaned."""

    def end(self) -> None:
        """End the line in which the agent speaks, if there is one."""

    def refresh(self) -> None:
        """Show that the work under way has changed."""


def encodable(text: str, encoding: str) -> str:
    """Return a text as far as an encoding has it, with marks of ASCII in the place of ours."""
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
