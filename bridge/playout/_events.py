"""Tells a call what the caller hears of its agents."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from ..events import (
    AgentError,
    AgentSpeechCut,
    AgentSpeechSent,
    AgentStartedSpeaking,
    AgentStoppedSpeaking,
    AgentUtteranceQueued,
)
from ._echo_text import LINGERS_S
from ._utterance import Utterance

if TYPE_CHECKING:
    from bargein.routes import Router

    from ..answers._history_writer import AnswerMemory


class Telling:
    """Makes events and memory of what the playout tells; its listener."""

    __slots__ = ("_last", "_memory", "_router", "_settled")

    def __init__(
        self, router: Router, memory: AnswerMemory, settled: Callable[[Utterance], None]
    ) -> None:
        """Tell a call of its agents' voices.

        Args:
            router: The call's.
            memory: Writes down what was heard.
            settled: Called with each utterance of which nothing will change any more.
        """
        self._router = router
        self._memory = memory
        self._settled = settled
        self._last = ("", -math.inf)

    def said_before(self, now_s: float) -> str:
        """Return what was heard of the last utterance that is over, while that is not long ago."""
        text, over_at_s = self._last
        return text if now_s - over_at_s <= LINGERS_S else ""

    def utterance_started(self, utterance: Utterance) -> None:
        """Publish that the agent has started to speak."""
        self._publish(utterance, AgentStartedSpeaking(utterance=utterance.number))

    def words_heard(self, utterance: Utterance, text: str) -> None:
        """Remember and tell what was heard."""
        self._memory.remember(utterance.turn)  # a word that is told is written down
        self._publish(utterance, AgentSpeechSent(content=text, utterance=utterance.number))

    def utterance_queued(self, utterance: Utterance) -> None:
        """Publish that the transport has all its audio."""
        self._publish(utterance, AgentUtteranceQueued(utterance=utterance.number))

    def voice_failed(self, utterance: Utterance) -> None:
        """Publish that the rest of an utterance will not be said."""
        text = f"the voice gave no audio for utterance {utterance.number}; its rest is left out"
        self._publish(utterance, AgentError(message=text))

    def utterance_finished(self, utterance: Utterance) -> None:
        """Let the run go that said it, and tell that the agent has fallen silent."""
        utterance.let_runs_go()
        if utterance.started:
            self._last = (utterance.heard, trio.current_time())
            cut = utterance.is_cut or not utterance.is_heard_whole
            self._publish(utterance, AgentStoppedSpeaking(utterance=utterance.number, cut=cut))

    def utterance_settled(self, utterance: Utterance) -> None:
        """Publish how much of a cut utterance was heard, now that it is known."""
        self._memory.note(utterance.turn)
        if utterance.is_cut:
            cut = AgentSpeechCut(
                utterance=utterance.number,
                heard=utterance.heard,
                unheard=utterance.generated[utterance.heard_chars :],
                at_ms=utterance.cut_at_ms or 0.0,
                basis=utterance.basis,
            )
            self._publish(utterance, cut)
        self._settled(utterance)

    def _publish(self, utterance: Utterance, event: object) -> None:
        # These are facts about the caller's ear: they stand whether the run was cut or not.
        self._router.publish_detached(event, utterance.turn.agent)
