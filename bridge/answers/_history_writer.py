"""Writes the answers to the history, with how much of each was heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..history._history import History
    from ._answer import Turn


class AnswerMemory:
    """Writes the answers of one call to its history; changed ones are collected first."""

    __slots__ = ("_history", "_unwritten")

    def __init__(self, history: History) -> None:
        self._history = history
        self._unwritten: dict[Turn, None] = {}  # a dict: an empty set takes 0.2 kB

    def remember(self, turn: Turn) -> None:
        """Write what a turn said, and how much of it was heard."""
        said = (turn.agent, turn.generated, turn.heard, turn.basis)
        self._history.set_agent(turn.number, *said, turn.is_notice)

    def remember_if_begun(self, turn: Turn) -> None:
        """Write a turn if it has said anything."""
        if turn.generated:
            self.remember(turn)

    def note(self, turn: Turn) -> None:
        """Write a turn whenever the history is read, until its generation has ended."""
        self._unwritten[turn] = None

    def write(self) -> None:
        """Write every turn that may have changed."""
        for turn in tuple(self._unwritten):
            self.remember(turn)
            if turn.outcome is not None:
                del self._unwritten[turn]
