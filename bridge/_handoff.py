"""Gives the floor to another agent, as ``AgentHandoff`` asks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import structlog

from bargein.routes import Message

from ._call_context import CallContext
from .answers._answer import lineage
from .control._questions import Questions
from .events import AgentError, AgentHandoff

log = structlog.get_logger()


class Handoff:
    """The hand-overs of one call."""

    __slots__ = ("_floor", "_moved", "_questions", "_router")

    def __init__(
        self, context: CallContext, questions: Questions, moved: Callable[[], None]
    ) -> None:
        """Listen for hand-overs.

        Args:
            context: The call's.
            questions: Those of agents that lose the floor are closed.
            moved: Told that another agent has the floor, before its chains hear of that.
        """
        self._router = context.router
        self._floor = context.floor
        self._questions = questions
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
            self._router.call_after(partial(self._pass_on_words, old))
            self._leave_floor(old, message)
            self._questions.close_unheard()
        log.info("handed_over", to=target, by=old or None)

    def _pass_on_words(self, old: str) -> None:
        """Let whoever has the floor now answer the words that wait behind the old agent's answer.

        The chains of the new agent on the hand-over itself have begun by then, and come first.
        """
        new = self._floor.holder  # it may have been handed on at once, or back
        if new != old:
            self._router.hand_on(old, new, self._is_of_caller, "the floor was handed over")

    def _is_of_caller(self, message: Message) -> bool:
        return not self._floor.is_agent(message.source)

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
