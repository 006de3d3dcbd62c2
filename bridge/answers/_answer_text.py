"""Which utterance the text of an agent belongs to, and what of it is remembered.

A run that said something is held until that was heard: so it stays interruptible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import structlog

from bargein.routes import Message, Outcome, Run

from ..events import AgentResponse, AgentSpeechSent, AgentTextComplete
from ..playout._playout import Playout
from ..playout._utterance import Utterance
from ..playout._utterance_timing import TICK_S
from ._answer import Turn, Turns, lineage, outermost

if TYPE_CHECKING:
    from .._call_context import CallContext
    from ._history_writer import AnswerMemory

log = structlog.get_logger()


class Answers(Protocol):
    """Begins and ends the turns that texts belong to."""

    is_closed: bool
    """Whether the call is over: nothing is said any more."""

    def open_turn(self, run: Run | None, agent: str) -> Turn:
        """Begin a turn of an agent."""
        ...

    def finish(self, turn: Turn, outcome: Outcome) -> None:
        """End the text of a turn; one that has ended keeps its outcome."""


class Texts:
    """Gives the text of the agents to utterances."""

    __slots__ = (
        "_answers", "_audio", "_floor", "_history", "_memory", "_playout", "_router", "_turns",
    )  # fmt: skip

    def __init__(
        self,
        context: CallContext,
        answers: Answers,
        turns: Turns,
        playout: Playout,
        memory: AnswerMemory,
    ) -> None:
        self._router = context.router
        self._floor = context.floor
        self._history = context.history
        self._audio = context.audio
        self._answers = answers
        self._turns = turns
        self._playout = playout
        self._memory = memory
        context.router.observe(AgentResponse, self._response)
        context.router.add_sink(self._response_passed, AgentResponse)

    def complete(self, turn: Turn) -> None:
        """Speak what a turn has said so far, without waiting for the rest of its clause."""
        for utterance in turn.utterances:
            if not utterance.text_complete:
                self._playout.text_complete(utterance)
                if not utterance.finished:
                    complete = AgentTextComplete(utterance=utterance.number)
                    self._publish_of(utterance, complete)

    # --- text -------------------------------------------------------------------------------------

    def _response(self, message: Message) -> None:
        has_floor = message.source == self._floor.holder or self._floor.is_audible(message)
        if self._answers.is_closed or not has_floor:
            log.debug("unheard_agent", source=message.source)
            return
        response: AgentResponse = message.event
        run = message.run
        turn = self._turns.of(run) or self._cut_by_its_first_words(message)
        if turn is not None and turn.end_job is not None:
            turn.say_aside(response.content)
            return
        if turn is None or turn.outcome is not None:
            turn = self._answers.open_turn(outermost(run), message.source)
        if run is not None and run not in turn.active:
            self._turns.join(turn, run)
        utterance = self._utterance_for(turn, run, response.interruptible)
        if not utterance.generated and not turn.generated:
            self._memory.remember(turn)  # takes its place in the history's order
        utterance.add_text(response.content, message.at_s)
        if self._audio:
            self._playout.look_by(message.at_s + TICK_S)
        message.carry(utterance)
        self._memory.note(turn)

    def _cut_by_its_first_words(self, message: Message) -> Turn | None:
        """Return the turn that this message has cut and would begin: what it says is all of it."""
        turn = self._turns.cut_by_itself(message)
        return turn if turn is not None and not turn.generated else None

    def _response_passed(self, message: Message) -> None:
        utterance: Utterance | None = message.tag
        if utterance is None:
            return
        turn = utterance.turn
        if not self._audio:
            utterance.hear_as_text()
            if self._history.on_change is not None:
                self._memory.write()  # saved before it is told
            sent = AgentSpeechSent(content=message.event.content, utterance=utterance.number)
            self._publish_of(utterance, sent)
        if turn.interruption is not None:
            self._answers.finish(turn, "interrupted")  # by these words, which are all of it
        elif not turn.active:
            self._answers.finish(turn, "completed")  # no run will end it

    def _utterance_for(self, turn: Turn, run: Run | None, interruptible: bool) -> Utterance:
        last = turn.utterances[-1] if turn.utterances else None
        if last is not None and last.interruptible == interruptible and not last.text_complete:
            if run is not None and run not in last.runs:
                self._hold(last, run)
            return last
        self.complete(turn)
        utterance = Utterance(self._playout.new_number(), turn, interruptible)
        turn.add_utterance(utterance)
        if self._audio:
            self._playout.add(utterance, first=turn.is_notice)
        if run is not None:
            self._hold(utterance, run)
        return utterance

    def _hold(self, utterance: Utterance, run: Run) -> None:
        """Keep a run that gives text interruptible until that was heard."""
        utterance.say_for(run, lineage(run) if self._audio else ())

    def _publish_of(self, utterance: Utterance, event: object) -> None:
        """Publish what belongs to an utterance: stale with its run, and with no other."""
        router, agent = self._router, utterance.turn.agent
        if utterance.runs:
            router.publish(event, agent, utterance.runs[0])
        else:
            router.publish_detached(event, agent)
