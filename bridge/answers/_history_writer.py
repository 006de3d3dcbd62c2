"""Writes the answers to the history, with how much of each was heard."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..history._history import History
    from ._answer import Answer


class AnswerMemory:
    """Writes the answers of one call to its history; changed ones are collected first."""

    __slots__ = ("_advance", "_history", "_unwritten")

    def __init__(self, history: History, advance: Callable[[], None]) -> None:
        """Start without answers.

        Args:
            history: The call's.
            advance: Updates what was said and heard until now, and calls ``write()``.
        """
        self._history = history
        self._advance = advance
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

    # --- once what was said until now is in it --------------------------------------------------

    def note_resumed(self, step: int, note: str) -> None:
        """Record that a paused answer continues; see ``History.add_resumed()``."""
        self._advance()
        self._history.add_resumed(step, note)

    def note_for_model(self, text: str) -> None:
        """Record what models see and nobody has said."""
        self._advance()
        self._history.add_note(text)

    def keep_said(self, messages: Iterable[int]) -> None:
        """Record that the words of these messages were handled, so they cannot be given back."""
        self._advance()
        self._history.keep_said(messages)

    def give_back_input(self, answered: int, until: int) -> list[str]:
        """Mark the caller's words that wait for an answer as returned, and return them.

        Args:
            answered: The number of the last message that was answered.
            until: The number of the last message that waits for its answer.
        """
        self._advance()
        return self._history.give_back(answered, until)
