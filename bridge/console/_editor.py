"""The line being typed: its text, its cursor and its history; no I/O."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable

from ..commands._terminal_text import clean, width_of
from ._key_parser import Key

MAX_HISTORY = 500


class LineEditor:
    """Edits one entry, which may have several lines.

    Attributes:
        text: The text so far.
        cursor: The index in it at which the next character is inserted.
    """

    def __init__(self) -> None:
        self.text = ""
        self.cursor = 0
        self._history: list[str] = []
        self._at = 0
        self._draft = ""
        self._killed = ""
        self._actions: dict[str, Callable[[], None]] = {
            **dict.fromkeys(("left", "ctrl+b"), self._left),
            **dict.fromkeys(("right", "ctrl+f"), self._right),
            **dict.fromkeys(("home", "ctrl+a"), self._home),
            **dict.fromkeys(("end", "ctrl+e"), self._end),
            **dict.fromkeys(("alt+b", "alt+left", "ctrl+left"), self._word_left),
            **dict.fromkeys(("alt+f", "alt+right", "ctrl+right"), self._word_right),
            **dict.fromkeys(("up", "ctrl+p"), self._up),
            **dict.fromkeys(("down", "ctrl+n"), self._down),
            "backspace": self._backspace,
            **dict.fromkeys(("delete", "ctrl+d"), self._delete),
            "ctrl+k": self._kill_to_end,
            "ctrl+u": self._kill_to_start,
            **dict.fromkeys(("ctrl+w", "alt+backspace"), self._kill_word_left),
            **dict.fromkeys(("alt+d", "ctrl+delete", "alt+delete"), self._kill_word_right),
            "ctrl+y": lambda: self._insert(self._killed),
            **dict.fromkeys(("alt+enter", "ctrl+j"), lambda: self._insert("\n")),
        }

    def press(self, key: Key) -> bool:
        """Apply a key to the text.

        Returns:
            False if it does nothing here, like Enter, Esc and all keys that do not edit.
        """
        if key.name in ("text", "paste"):
            self._insert(clean(key.text))
            return True
        action = self._actions.get(key.name)
        if action is not None:
            action()
        return action is not None

    def submit(self) -> str:
        """Return the text, add it to the history, and start anew."""
        text = self.text
        if text.strip() and self._history[-1:] != [text]:
            self._history = [*self._history[-MAX_HISTORY + 1 :], text]
        self.clear()
        return text

    def remember(self, entries: Iterable[str]) -> None:
        """Add entries of earlier conversations to the history, before its own."""
        self._history = [*entries, *self._history][-MAX_HISTORY:]
        self._at = len(self._history)

    def clear(self) -> None:
        """Start anew; ``ctrl+y`` brings back the text."""
        self._killed = self.text or self._killed
        self.text, self.cursor = "", 0
        self._at, self._draft = len(self._history), ""

    def replace(self, text: str) -> None:
        """Replace the text, and put the cursor at its end."""
        self.text, self.cursor = text, len(text)

    # --- moving ---------------------------------------------------------------------------------

    def _left(self) -> None:
        self.cursor = self._before(self.cursor)

    def _right(self) -> None:
        self.cursor = self._after(self.cursor)

    def _home(self) -> None:
        self.cursor = self.text.rfind("\n", 0, self.cursor) + 1

    def _end(self) -> None:
        end = self.text.find("\n", self.cursor)
        self.cursor = len(self.text) if end < 0 else end

    def _word_left(self) -> None:
        at = self.cursor
        while at and not self.text[at - 1].isalnum():
            at -= 1
        while at and self.text[at - 1].isalnum():
            at -= 1
        self.cursor = at

    def _word_right(self) -> None:
        at, end = self.cursor, len(self.text)
        while at < end and not self.text[at].isalnum():
            at += 1
        while at < end and self.text[at].isalnum():
            at += 1
        self.cursor = at

    def _up(self) -> None:
        start = self.text.rfind("\n", 0, self.cursor)
        if start < 0:
            self._recall(self._at - 1)
            return
        column = self.cursor - start - 1
        above = self.text.rfind("\n", 0, start) + 1
        self.cursor = min(above + column, start)

    def _down(self) -> None:
        end = self.text.find("\n", self.cursor)
        if end < 0:
            self._recall(self._at + 1)
            return
        column = self.cursor - self.text.rfind("\n", 0, self.cursor) - 1
        below = self.text.find("\n", end + 1)
        self.cursor = min(end + 1 + column, len(self.text) if below < 0 else below)

    def _recall(self, at: int) -> None:
        if not 0 <= at <= len(self._history):
            return
        if self._at == len(self._history):
            self._draft = self.text
        self._at = at
        self.replace(self._draft if at == len(self._history) else self._history[at])

    def _before(self, at: int) -> int:
        """Return where the previous character starts, including what is joined to it."""
        at = max(at - 1, 0)
        while at and (_joins(self.text[at]) or self.text[at - 1] == "\u200d"):
            at -= 1
        return at

    def _after(self, at: int) -> int:
        end = len(self.text)
        at = min(at + 1, end)
        while at < end and (_joins(self.text[at]) or self.text[at - 1] == "\u200d"):
            at += 1
        return at

    # --- changing -------------------------------------------------------------------------------

    def _insert(self, text: str) -> None:
        self.text = self.text[: self.cursor] + text + self.text[self.cursor :]
        self.cursor += len(text)

    def _cut(self, start: int, end: int) -> str:
        cut = self.text[start:end]
        self.text = self.text[:start] + self.text[end:]
        self.cursor = start
        return cut

    def _backspace(self) -> None:
        self._cut(self._before(self.cursor), self.cursor)

    def _delete(self) -> None:
        self._cut(self.cursor, self._after(self.cursor))

    def _kill_to_end(self) -> None:
        start = self.cursor
        self._end()
        end = self.cursor + (self.cursor == start and self.cursor < len(self.text))
        self._killed = self._cut(start, end)

    def _kill_to_start(self) -> None:
        end = self.cursor
        self._home()
        self._killed = self._cut(self.cursor, end)

    def _kill_word_left(self) -> None:
        end = self.cursor
        at = end
        while at and self.text[at - 1].isspace():
            at -= 1
        while at and not self.text[at - 1].isspace():
            at -= 1
        self._killed = self._cut(at, end)

    def _kill_word_right(self) -> None:
        start = self.cursor
        self._word_right()
        self._killed = self._cut(start, self.cursor)


def _joins(character: str) -> bool:
    """Whether a character is shown as part of the previous one."""
    return width_of(character) == 0 and unicodedata.category(character) != "Cc"
