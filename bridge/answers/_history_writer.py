"""Writes the answers to the history, with how much of each was heard."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..history._history import History
    from ._answer import Answer


class AnswerMemory:
    """Writes the answers of one call to its history; changed ones are collected first."""

    __slots__ = ("_history", "_unwritten")

    def __init__(self, history: History) -> None:
        self._history = history
        self._unwritten: dict[Answer, None] = {}  # a dict: an empty set takes 0.2 kB

    def remember(self, answer: Answer) -> None:
        """Write what an answer said, and how much of it was heard."""
        said = (answer.agent, answer.generated, answer.heard, answer.basis)
        self._history.set_agent(answer.number, *said, answer.is_notice)

    def remember_if_begun(self, answer: Answer) -> None:
        """Write an answer if it has said anything."""
        if answer.generated:
            self.remember(answer)

    def note(self, answer: Answer) -> None:
        """Write an answer whenever the history is read, until its generation has ended."""
        self._unwritten[answer] = None

    def write(self) -> None:
        """Write every answer that may have changed."""
        for answer in tuple(self._unwritten):
            self.remember(answer)
            if answer.outcome is not None:
                del self._unwritten[answer]
