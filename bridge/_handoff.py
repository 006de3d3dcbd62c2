"""Gives the floor to another agent, as ``AgentHandoff`` asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import structlog

from bargein.routes import Message, Run

from ._call_context import CallContext
from .answers._answer import Turn, lineage
from .control._questions import Questions
from .events import AgentError, AgentHandoff

log = structlog.get_logger()


class Handoff:
    """Hands over the floor of one call between agents."""

    __slots__ = ("_floor", "_moved", "_questions", "_router", "_turn_of")

    def __init__(
        self,
        context: CallContext,
        questions: Questions,
        turn_of: Callable[[Run | None], Turn | None],
        moved: Callable[[], None],
    ) -> None:
        """Listen for ``AgentHandoff``.

        Args:
            context: The call's.
            questions: Closes the questions of an agent that loses the floor.
            turn_of: Returns the turn that a run works on.
            moved: Called once another agent has the floor, before its chains get the event.
        """
        self._router = context.router
        self._floor = context.floor
        self._questions = questions
        self._turn_of = turn_of
        self._moved = moved
        context.router.observe(AgentHandoff, self._hand_over)

    def _hand_over(self, message: Message) -> None:
        target, agents = message.event.target, list(self._floor.agents)
        if target not in agents:
            log.error("handoff_to_unknown_agent", target=target, agents=agents)
            text = f"no agent {target!r} in this call; there are {agents}"
            self._router.caught(LookupError(text))
            self._router.publish_detached(AgentError(message=text), "call")
            return
        old = self._floor.give(target)
        if old and old != target:
            self._moved()
            unanswered = self._leave_floor(old, message)
            self._router.call_after(partial(self._pass_on_words, old, unanswered))
            self._questions.close_unheard()
        log.info("handed_over", to=target, by=old or None)

    def _pass_on_words(self, old: str, unanswered: list[Message]) -> None:
        """Let the new holder of the floor answer the words that have had no answer yet.

        Some are queued behind the old agent's answer.  The new agent's chains on the hand-over
        itself have started by then, and come first.
        """
        new = self._floor.holder  # it may have been handed on, or back, at once
        if new != old:
            reason = "the floor was handed over"
            self._router.hand_on(old, new, self._is_of_caller, reason, unanswered)

    def _is_of_caller(self, message: Message) -> bool:
        return not self._floor.is_agent(message.source)

    def _leave_floor(self, old: str, message: Message) -> list[Message]:
        """End the old agent's runs; the run that hands over keeps what it said so far.

        Returns:
            The caller's turns that those runs were answering, if nothing of an answer was heard.
        """
        unanswered: list[Message] = []
        own = set(lineage(message.run))
        for runtime in self._router.routes:
            if runtime.source == old:
                for run in runtime.runs:
                    if run in own:
                        run.stop()
                        continue
                    said, turn = run.trigger, self._turn_of(run)
                    is_cut = run.cut(message, reason="the floor was handed over")
                    answers = runtime.route.streams and turn is not None and not turn.heard.strip()
                    if is_cut and answers and said is not None and self._is_of_caller(said):
                        unanswered.append(said)
        return unanswered
