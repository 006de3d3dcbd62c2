"""Publishes what the caller hears of the agents."""

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
from ..playout._echo_text import LINGERS_S
from ..playout._utterance import Utterance
from ..playout._utterance_timing import PLAYER_S

if TYPE_CHECKING:
    from bargein.routes import Router

    from ._history_writer import AnswerMemory


class PlayoutEvents:
    """Listens to the playout, publishes events and updates the history."""

    __slots__ = ("_last", "_memory", "_router", "_settled")

    def __init__(
        self, router: Router, memory: AnswerMemory, settled: Callable[[Utterance], None]
    ) -> None:
        """Publish to a router.

        Args:
            router: The call's.
            memory: Writes what was heard to the history.
            settled: Called with each utterance that will not change any more.
        """
        self._router = router
        self._memory = memory
        self._settled = settled
        self._last = ("", -math.inf)

    def said_before(self, now_s: float) -> str:
        """Return what was heard of the last finished utterance, if it ended recently."""
        text, over_at_s = self._last
        return text if now_s - over_at_s <= LINGERS_S else ""

    def utterance_started(self, utterance: Utterance) -> None:
        """Publish that the agent started to speak."""
        self._publish(utterance, AgentStartedSpeaking(utterance=utterance.number))

    def words_heard(self, utterance: Utterance, text: str) -> None:
        """Record and publish what was heard."""
        self._memory.remember(utterance.answer)  # written before it is published
        self._publish(utterance, AgentSpeechSent(content=text, utterance=utterance.number))

    def utterance_queued(self, utterance: Utterance) -> None:
        """Publish that the transport has all its audio."""
        self._publish(utterance, AgentUtteranceQueued(utterance=utterance.number))

    def voice_failed(self, utterance: Utterance) -> None:
        """Publish that the rest of an utterance will not be said."""
        text = (
            f"the voice gave no audio for utterance {utterance.number} in time; its rest is dropped"
        )
        self._publish(utterance, AgentError(message=text))

    def player_failed(self, utterance: Utterance) -> None:
        """Publish that the rest of an utterance will not be heard."""
        text = (
            f"the player reported nothing about utterance {utterance.number} for {PLAYER_S:g} s; "
            "its rest counts as unheard"
        )
        self._publish(utterance, AgentError(message=text))

    def utterance_finished(self, utterance: Utterance) -> None:
        """Release the runs that said it, and publish that the agent fell silent."""
        utterance.let_runs_go()
        if utterance.played.started:
            self._last = (utterance.heard, trio.current_time())
            cut = utterance.is_cut or not utterance.is_heard_whole
            self._publish(utterance, AgentStoppedSpeaking(utterance=utterance.number, cut=cut))

    def utterance_settled(self, utterance: Utterance) -> None:
        """Publish how much of a cut utterance was heard, now that this is known."""
        self._memory.note(utterance.answer)
        if utterance.is_cut:
            cut = AgentSpeechCut(
                utterance=utterance.number,
                heard=utterance.heard,
                unheard=utterance.generated[utterance.heard_chars :],
                at_ms=utterance.played.cut_at_ms or 0.0,
                basis=utterance.basis,
            )
            self._publish(utterance, cut)
        self._settled(utterance)

    def _publish(self, utterance: Utterance, event: object) -> None:
        # What the caller heard stays true even if the run was cut.
        self._router.publish_detached(event, utterance.answer.agent)
