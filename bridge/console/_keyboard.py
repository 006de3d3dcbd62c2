"""Reads the keys of a terminal: Esc interrupts the agent, Enter sends, others edit the line."""

from __future__ import annotations

import os
import signal
from collections.abc import MutableSequence
from typing import Protocol, final

import trio

from ._editor import LineEditor
from ._key_parser import Key, KeyParser


class KeyActions(Protocol):
    """What keys do besides editing the line.  No method waits."""

    @property
    def queued(self) -> MutableSequence[str]:
        """What was entered and waits to be sent."""
        ...

    def enter(self, entry: str) -> None:
        """Take what was typed."""
        ...

    def interrupt(self) -> bool:
        """Cancel what the agent does; False if there is nothing to cancel."""
        ...

    def take_signal(self, number: int) -> None:
        """Do what a signal says."""
        ...

    def draw_anew(self) -> None:
        """Draw everything again at the next `refresh`."""
        ...

    def refresh(self) -> None:
        """Draw soon."""
        ...

    def leave(self) -> None:
        """End the conversation."""
        ...


@final
class Keyboard:
    """The keys of one terminal, as they are pressed."""

    def __init__(self, terminal: int, editor: LineEditor, actions: KeyActions) -> None:
        """Begin with no key pressed.

        Args:
            terminal: The descriptor to read from.
            editor: The line that is typed.
            actions: Does what the keys say that do not edit it.
        """
        self._terminal = terminal
        self._editor = editor
        self._actions = actions
        self._parser = KeyParser()

    async def read(self) -> None:
        """Do what each key says, until the terminal is gone; cancelling this is safe."""
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
                self._actions.take_signal(signal.SIGHUP)
                return
            self._press(self._parser.feed(data))

    def reset(self) -> None:
        """Forget a key, or a paste, of which only a part has come."""
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
                    self._actions.take_signal(signal.SIGINT)
                case "ctrl+d" if not self._editor.text:
                    self._actions.leave()
                case "ctrl+l":
                    self._actions.draw_anew()
                case "up" if not self._editor.text and self._actions.queued:
                    self._editor.replace(self._actions.queued.pop())
                case _:
                    self._editor.press(key)
        self._actions.refresh()
