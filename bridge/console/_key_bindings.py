"""Binds the keys of a terminal: Esc interrupts the agent, Enter sends, others edit the line."""

from __future__ import annotations

import os
import signal
from typing import Protocol, final

import trio

from ._editor import LineEditor
from ._key_parser import Key, KeyParser


class KeyActions(Protocol):
    """The actions of keys besides editing the line.  No method waits."""

    def unqueue(self) -> str | None:
        """Return the last entry that waits to be sent, which then is not; ``None`` for none."""
        ...

    def enter(self, entry: str) -> None:
        """Accept what was typed."""
        ...

    def complete(self) -> None:
        """Complete the command being typed."""
        ...

    def interrupt(self) -> bool:
        """Cancel the agent's work; False if there is none."""
        ...

    def handle_signal(self, number: int) -> None:
        """Handle a signal."""
        ...

    def draw_anew(self) -> None:
        """Redraw everything at the next ``refresh()``."""
        ...

    def refresh(self) -> None:
        """Redraw soon."""
        ...

    def leave(self) -> None:
        """End the conversation."""
        ...


@final
class Keyboard:
    """Reads the keys of one terminal."""

    def __init__(self, terminal: int, editor: LineEditor, actions: KeyActions) -> None:
        """Start without a key.

        Args:
            terminal: The file descriptor to read from.
            actions: Handles the keys that do not edit it.
        """
        self._terminal = terminal
        self._editor = editor
        self._actions = actions
        self._parser = KeyParser()

    async def read(self) -> None:
        """Handle keys until the terminal is gone.  Cancelling this is safe."""
        while True:
            with trio.move_on_after(self._parser.patience_s) as pause:
                await trio.lowlevel.wait_readable(self._terminal)
            if pause.cancelled_caught:
                self._press(self._parser.expire())
                continue
            try:
                data = os.read(self._terminal, 65_536)
            except OSError:  # the terminal is gone
                data = b""
            if not data:
                self._actions.handle_signal(signal.SIGHUP)
                return
            self._press(self._parser.feed(data))

    def reset(self) -> None:
        """Forget an incomplete key or paste."""
        self._parser.reset()

    def _press(self, keys: list[Key]) -> None:
        for key in keys:
            match key.name:
                case "esc":
                    if not self._actions.interrupt():
                        self._editor.clear()
                case "enter":
                    self._actions.enter(self._editor.submit())
                case "ctrl+c":
                    self._actions.handle_signal(signal.SIGINT)
                case "ctrl+d" if not self._editor.text:
                    self._actions.leave()
                case "tab":
                    self._actions.complete()
                case "ctrl+l":
                    self._actions.draw_anew()
                case "up" if not self._editor.text and (entry := self._actions.unqueue()):
                    self._editor.replace(entry)
                case _:
                    self._editor.press(key)
        self._actions.refresh()
