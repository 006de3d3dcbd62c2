"""What a call does about answers that end without a word.

An answer that the caller waits for fails if it says nothing.  Deliberate silence is explicit: the
answer publishes ``AgentStaysSilent``, or something that hands the caller on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.routes import Message
from bargein.routes.logs import get_logger

from ..events import (
    AgentHandoff,
    AgentResponse,
    AgentStaysSilent,
    AnswerEnded,
    EndCall,
    TransferCall,
)
from ..languages import language

if TYPE_CHECKING:
    from ..context._call_context import CallContext
    from ._call_answers import CallAnswers

log = get_logger()


class UnansweredCallers:
    """Watches the answers of one call for those that leave the caller without a word."""

    __slots__ = ("_answers", "_apology")

    def __init__(self, context: CallContext, answers: CallAnswers) -> None:
        """Watch the answers of a call.

        Args:
            context: The call's.
            answers: Its answers.
        """
        self._answers = answers
        self._apology = language(context.language).apology
        silent = [AgentStaysSilent, EndCall, TransferCall, AgentHandoff]
        context.router.observe(silent, self._allow_silence)
        context.router.observe(AnswerEnded, self._note_end)
        if not context.audio:
            context.router.add_sink(self._apologise, AnswerEnded)

    def _allow_silence(self, message: Message) -> None:
        answer = self._answers.answer_of(message.run)
        if answer is not None:
            answer.stay_silent()

    def _note_end(self, message: Message) -> None:
        ended: AnswerEnded = message.event
        if ended.unanswered:
            log.warning(
                "caller_not_answered",
                answer=ended.answer,
                agent=ended.agent,
                outcome=ended.outcome,
                capped=ended.capped,
                finish_reason=ended.finish_reason,
            )

    def _apologise(self, message: Message) -> None:
        if message.event.unanswered:
            self._answers.say(AgentResponse(content=self._apology), is_notice=True)
