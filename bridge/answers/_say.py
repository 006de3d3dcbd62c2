"""The fixed texts of ``call.say()``: answers that no node generates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.routes import Message, Outcome

from ..events import AgentResponse, EmergencyStop, UserStartedSpeaking
from ._answer import FixedText
from ._answer_handle import OwnedAnswerHandle

if TYPE_CHECKING:
    from .._call_context import CallContext


class FixedTexts:
    """The fixed texts of one call, including those that wait for the end of a pause."""

    __slots__ = ("_context", "_has_chain", "_router", "_unbegun")

    def __init__(self, context: CallContext) -> None:
        self._context = context
        self._router = context.router
        self._unbegun: list[OwnedAnswerHandle] = []
        self._has_chain = False

    def say(
        self, response: AgentResponse, handle: OwnedAnswerHandle, *, is_notice: bool
    ) -> OwnedAnswerHandle:
        """Queue a text in this step, and return its handle."""
        if not self._has_chain:
            self._write_chain()
        self._router.publish_detached(FixedText(response, handle, is_notice), "call")
        if handle.number is None:
            self._unbegun.append(handle)  # nothing starts while the call is paused
        return handle

    def _write_chain(self) -> None:
        """Write the chain of fixed texts with the first one: each chain slows down barge-ins."""
        self._has_chain = True
        self._router.on(FixedText, name="call", overlap="concurrent").interrupt_on(
            [UserStartedSpeaking, EmergencyStop]
        ).map(_as_response).broadcast()
        if self._context.is_paused:
            self._router.pause_all("call")

    def begun(self, handle: OwnedAnswerHandle) -> None:
        """Record that a text has started its answer."""
        if handle in self._unbegun:
            self._unbegun.remove(handle)

    def end_unbegun(self, outcome: Outcome) -> None:
        """End the texts that have not started."""
        waiting, self._unbegun = self._unbegun, []
        for handle in waiting:
            if handle.outcome is None:
                handle.end(outcome)


def _as_response(message: Message) -> AgentResponse | None:
    wanted: FixedText = message.event
    return wanted.response if wanted.handle.outcome is None else None
