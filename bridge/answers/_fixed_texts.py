"""The fixed texts of ``call.say()``: answers that no node generates."""

from __future__ import annotations

from bargein.routes import Message, Outcome, Router

from ..events import AgentResponse, EmergencyStop, UserStartedSpeaking
from ._answer import FixedText
from ._handle import AnswerHandle


class FixedTexts:
    """The fixed texts of one call, those among them that a pause keeps in line."""

    __slots__ = ("_router", "_unbegun")

    def __init__(self, router: Router) -> None:
        self._router = router
        self._unbegun: list[AnswerHandle] = []
        router.on(FixedText, name="call", overlap="concurrent").interrupt_on(
            [UserStartedSpeaking, EmergencyStop]
        ).map(_as_response).broadcast()

    def say(
        self, response: AgentResponse, handle: AnswerHandle, *, is_notice: bool
    ) -> AnswerHandle:
        """Queue a text, in this step, and return its handle."""
        self._router.publish_detached(FixedText(response, handle, is_notice), "call")
        if handle.turn is None:
            self._unbegun.append(handle)  # while the call is paused nothing begins
        return handle

    def begun(self, handle: AnswerHandle) -> None:
        """Record that a text has its turn."""
        if handle in self._unbegun:
            self._unbegun.remove(handle)

    def end_unbegun(self, outcome: Outcome) -> None:
        """End the texts that have not begun."""
        waiting, self._unbegun = self._unbegun, []
        for handle in waiting:
            if handle.outcome is None:
                handle._end(outcome)


def _as_response(message: Message) -> AgentResponse | None:
    wanted: FixedText = message.event
    return wanted.response if wanted.handle.outcome is None else None
