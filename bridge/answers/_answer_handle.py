"""The handle of one answer: it shows how much was heard and how it ended, and can cut it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, final

import trio

from bargein.routes.error_hints import SuggestsNames

from ..context._verb_receipt import Receipt
from ..events import Outcome

if TYPE_CHECKING:
    from ._answer import Answer


class AnswerHandle(SuggestsNames):
    """One answer of an agent: a text of ``call.say()``, or an answer that a node generates.

    ``await handle`` waits until the answer is over and returns its outcome; it never raises.  You
    may await it late, from several tasks, or not at all.  Cancelling the wait does not cut the
    answer.  A node that awaits its own answer waits until something cuts it.

    Use it from the call's event loop; from a thread, go through ``trio.from_thread``.
    """

    __slots__ = ("_answer", "_interrupt", "_outcome", "_over", "_receipt")

    def __init__(
        self, interrupt: Callable[[Answer | None, str], Receipt], answer: Answer | None = None
    ) -> None:
        self._interrupt = interrupt
        self._answer = answer
        self._outcome: Outcome | None = None
        self._over = trio.Event()
        self._receipt: Receipt | None = None

    @property
    def number(self) -> int | None:
        """Its number, as in events; ``None`` for a text that waits for the end of a pause."""
        return None if self._answer is None else self._answer.number

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; ``None`` until then.

        ``completed``: heard to its end.  ``interrupted``, ``redirected``: cut.  ``backgrounded``:
        it continues unheard.  ``capped``: a cap ended it.  ``failed``: its chain or its voice
        failed.  ``disconnected``, ``shutdown``: the call ended first.  ``AnswerEnded`` carries the
        same word.
        """
        return self._outcome

    @property
    def generated(self) -> str:
        """The text generated so far."""
        return "" if self._answer is None else self._answer.generated

    @property
    def heard(self) -> str:
        """What the caller has heard of it, to the word; final once there is an outcome."""
        return "" if self._answer is None else self._answer.heard

    def interrupt(self) -> Receipt:
        """Cut only this answer, now, even if it is not interruptible.

        This works like a barge-in: the history keeps what was heard, tools end by their policies,
        and the model learns nothing else.

        Returns:
            What was done.  Once accepted, every further call returns the same receipt.  If nothing
            was done, ``reason`` says why: the answer is over, or something else cut it.
        """
        if self._receipt is None or not self._receipt.accepted:
            unbegun = self._answer is None and self._outcome is None
            self._receipt = self._interrupt(self._answer, self._why_not())
            if unbegun:
                self._end("interrupted")
        return self._receipt

    def _why_not(self) -> str:
        if self._outcome is not None:
            return f"the answer is over: {self._outcome}"
        if self._answer is not None and (
            self._answer.interruption is not None or self._answer.is_stale
        ):
            return "something else cut the answer"
        return ""

    def __await__(self) -> Generator[Any, Any, Outcome]:
        yield from self._over.wait().__await__()
        assert self._outcome is not None  # _end() sets both
        return self._outcome

    def _end(self, outcome: Outcome) -> None:
        self._outcome = outcome
        self._over.set()

    def __repr__(self) -> str:
        number = "no answer yet" if self._answer is None else f"answer {self._answer.number}"
        return f"<AnswerHandle of {number}, {self._outcome or 'under way'}>"


@final
class OwnedAnswerHandle(AnswerHandle):
    """The handle as the call has it, which alone starts and ends its answer."""

    __slots__ = ()

    def start(self, answer: Answer) -> None:
        """Set the answer of a text that waited for one."""
        self._answer = answer

    def end(self, outcome: Outcome) -> None:
        self._end(outcome)
