"""Open questions that wait for an answer, whoever was asked and whatever about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

import trio

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(slots=True, eq=False)
class OpenQuestion(Generic[Q, A]):
    """A question whose answer can be awaited."""

    question: Q
    _answers: list[A] = field(default_factory=list)
    _answered: trio.Event = field(default_factory=trio.Event)

    async def answer(self) -> A:
        """Wait for the answer.  Cancelling this leaves the question open."""
        await self._answered.wait()
        return self._answers[0]

    def close(self, answer: A) -> None:
        """Set the answer; only the first one counts."""
        self._answers.append(answer)
        self._answered.set()


class OpenQuestions(dict[str, OpenQuestion[Q, A]]):
    """The open questions by their ids; each gets exactly one answer."""

    @property
    def pending(self) -> tuple[Q, ...]:
        """The questions without an answer, in the order in which they were asked."""
        return tuple(entry.question for entry in self.values())

    def question(self, id: str) -> Q | None:
        """Return the open question with an id; ``None`` for none."""
        entry = self.get(id)
        return None if entry is None else entry.question

    def add(self, id: str, question: Q) -> OpenQuestion[Q, A]:
        """Add a question; its id must not be that of an open one."""
        entry = self[id] = OpenQuestion[Q, A](question)
        return entry

    def close(self, id: str, answer: A) -> Q | None:
        """Answer a question, in this step.

        Returns:
            The question; ``None`` if it is not open.
        """
        entry = self.pop(id, None)
        if entry is None:
            return None
        entry.close(answer)
        return entry.question
