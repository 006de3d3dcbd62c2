"""The fixed texts of ``call.say()``: answers that no node generates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bargein.routes import Message, Outcome

from ..events import AgentResponse, DTMFInput, EmergencyStop, UserStartedSpeaking
from ._answer import FixedText, KeyMenu
from ._answer_handle import OwnedAnswerHandle

if TYPE_CHECKING:
    from ..context._call_context import CallContext


class FixedTexts:
    """The fixed texts of one call, including those that wait for the end of a pause."""

    __slots__ = ("_chains", "_context", "_router", "_unbegun")

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._router = context.router
        self._chains: set[type[FixedText]] = set()
        self._unbegun: list[FixedText] = []

    def say(self, wanted: FixedText) -> OwnedAnswerHandle:
        """Queue a text in this step, and return its handle."""
        if type(wanted) not in self._chains:
            self._write_chain(type(wanted))
        self._router.publish_detached(wanted, "call")
        if wanted.handle.number is None:
            self._unbegun.append(wanted)  # nothing starts while the call is paused
        return wanted.handle

    def _write_chain(self, kind: type[FixedText]) -> None:
        """Write the chain of a kind with its first text: each chain slows down barge-ins."""
        self._chains.add(kind)
        cuts: list[type] = [UserStartedSpeaking, EmergencyStop]
        if kind is KeyMenu:
            cuts.append(DTMFInput)
            self._router.observe(DTMFInput, self._end_unbegun_menus)
        texts = self._router.on(kind, name="call", where=_is_of(kind), overlap="concurrent")
        texts.interrupt_on(cuts).map(_as_response).broadcast()

    def begun(self, wanted: FixedText) -> None:
        """Record that a text has started its answer."""
        if wanted in self._unbegun:
            self._unbegun.remove(wanted)

    def end_unbegun(self, outcome: Outcome) -> None:
        """End the texts that have not started."""
        waiting, self._unbegun = self._unbegun, []
        for wanted in waiting:
            if wanted.handle.outcome is None:
                wanted.handle.end(outcome)

    def _end_unbegun_menus(self, _: Message) -> None:
        for wanted in [text for text in self._unbegun if isinstance(text, KeyMenu)]:
            wanted.handle.interrupt()


def _is_of(kind: type[FixedText]) -> Callable[[Message], bool]:
    return lambda message: type(message.event) is kind


def _as_response(message: Message) -> AgentResponse | None:
    wanted: FixedText = message.event
    return wanted.response if wanted.handle.outcome is None else None
