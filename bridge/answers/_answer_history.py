"""What questions and verbs write to the history of a call, through its answers."""

from __future__ import annotations

from collections.abc import Iterable

from ..history._history import History


class AnswerHistory:
    """Writes to the history once what was said until now is in it; a base of ``CallAnswers``."""

    answered: int

    @property
    def history(self) -> History:
        """What was said until now."""
        raise NotImplementedError  # CallAnswers writes what is still to be written first

    def note_resumed(self, step: int, note: str) -> None:
        """Record that a paused answer continues; see ``History.add_resumed()``."""
        self.history.add_resumed(step, note)

    def note_for_model(self, text: str) -> None:
        """Record what models see and nobody has said."""
        self.history.add_note(text)

    def keep_said(self, messages: Iterable[int]) -> None:
        """Record that the words of these messages were handled, so they cannot be given back."""
        self.history.keep_said(messages)

    def give_back_input(self, until: int) -> list[str]:
        """Mark the caller's words that wait for an answer as returned, and return them.

        Args:
            until: The number of the last message that waits for its answer.
        """
        return self.history.give_back(self.answered, until)
