"""Writes down what the answers have said, and what of it was heard."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..history._history import History
    from ._answer import Turn


class AnswerMemory:
    """The answers of one call in its history; those that have changed wait to be written.

    Attributes:
        note: Has a turn written down before the history is read.
    """

    __slots__ = ("_history", "_unwritten", "note")

    def __init__(self, history: History) -> None:
        self._history = history
        self._unwritten: dict[Turn, None] = {}  # mostly none, and an empty set takes 0.2 kB
        # No method of ours: it comes with each piece of an answer.
        self.note: Callable[[Turn], None] = self._unwritten.setdefault

    def remember(self, turn: Turn) -> None:
        """Write down what a turn has said, and what of it was heard."""
        said = (turn.agent, turn.generated, turn.heard, turn.basis)
        self._history.set_agent(turn.number, *said, turn.is_notice)

    def remember_if_begun(self, turn: Turn) -> None:
        """Write a turn down if it has said anything."""
        if turn.generated:
            self.remember(turn)

    def write(self) -> None:
        """Write down every turn that has changed."""
        while self._unwritten:
            self.remember(self._unwritten.popitem()[0])
