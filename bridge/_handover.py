"""Gives the floor to another agent, as ``AgentHandoff`` asks."""

from __future__ import annotations

import structlog

from bargein.routes import Message

from ._context import CallContext
from .answers._answer import lineage
from .control._questions import Questions
from .events import AgentError, AgentHandoff

log = structlog.get_logger()


class HandOver:
    """The hand-overs of one call."""

    def __init__(self, context: CallContext, questions: Questions) -> None:
        """Listen for hand-overs.

        Args:
            context: The call's.
            questions: Those of agents that lose the floor are closed.
        """
        self._router = context.router
        self._floor = context.floor
        self._questions = questions
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
            self._leave_floor(old, message)
            self._questions.close_unheard()
        log.info("handed_over", to=target, by=old or None)

    def _leave_floor(self, old: str, message: Message) -> None:
        """End the old agent's runs; the one that hands over keeps what it has said so far."""
        own = set(lineage(message.run))
        for runtime in self._router.routes:
            if runtime.source == old:
                for run in runtime.runs:
                    if run in own:
                        run.stop()
                    else:
                        run.cut(message, reason="the floor was handed over")
