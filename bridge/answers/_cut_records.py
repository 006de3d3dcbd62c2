"""Records the cuts of answers, and passes the records to the handlers of their chains."""

from __future__ import annotations

from dataclasses import replace

import trio

from bargein.routes import Interruption, Message, Phase

from .._verbs import AnswerPhase, Verb
from ..history._entries import AgentEntry, InterruptionRecord, directive_of
from ..history._history import History
from ._answer import Answer, verb_of

CUT_RUNS_KEPT = 32
"""For how many cut runs their answer is remembered."""


class CutRecords:
    """The cuts of one call's answers."""

    __slots__ = ("_cut_runs", "_history")

    def __init__(self, history: History) -> None:
        self._history = history
        self._cut_runs: list[tuple[int, int]] = []  # each with its answer

    def record(self, answer: Answer, interruption: Interruption, phase: AnswerPhase) -> None:
        """Record that an answer was cut or paused, and what it was doing."""
        record = record_of(answer, interruption, phase)
        self._history.set_interruption(record, answer.agent)

    def upgrade(self, number: int | None, verb: Verb) -> None:
        """Name a stronger verb in the record of a cut answer, which has only one record."""
        for entry in self._history.entries:
            record = entry.interruption if isinstance(entry, AgentEntry) else None
            if isinstance(entry, AgentEntry) and record and record.answer == number:
                stronger = replace(record, verb=verb, directive=directive_of(verb))
                self._history.set_interruption(stronger, entry.agent)

    def keep(self, answer: Answer, by: Interruption) -> None:
        """Remember which answer was cut with a run."""
        first = by.run if answer.run is None else answer.run.id
        self._cut_runs += ((run, answer.number) for run in {by.run, first})
        del self._cut_runs[:-CUT_RUNS_KEPT]

    def completed_for_handler(self, interruption: Interruption) -> Interruption:
        """Complete a cut for its handler: with the generated and heard text, and the tools."""
        number = dict(self._cut_runs).get(interruption.run)
        for entry in reversed(self._history.entries):
            record = entry.interruption if isinstance(entry, AgentEntry) else None
            if isinstance(entry, AgentEntry) and record and record.answer == number:
                return replace(
                    interruption, generated=entry.generated, heard=entry.heard, tools=record.tools
                )
        return interruption


def interruption_of(
    answer: Answer, cause: Message | None, reason: str, phase: Phase
) -> Interruption:
    """Describe the cut of an answer that no rule of its chain made."""
    at_s = trio.current_time() if cause is None else cause.at_s
    run = answer.run.id if answer.run is not None else 0
    elapsed_s = at_s - answer.started_at_s
    return Interruption(run, "", answer.agent, cause, reason, phase, at_s, elapsed_s)


def record_of(answer: Answer, interruption: Interruption, phase: AnswerPhase) -> InterruptionRecord:
    """Return the record of the cut of an answer."""
    cause = interruption.cause
    verb = verb_of(cause)
    return InterruptionRecord(
        answer=answer.number,
        verb=verb,
        by=cause.source if cause else "",
        cause=cause.alias if cause else interruption.reason,
        phase=phase,
        at_s=interruption.at_s,
        elapsed_s=interruption.elapsed_s,
        generated=answer.generated,
        heard=answer.heard,
        basis=answer.basis,
        step=answer.step,
        directive=directive_of(verb),
    )
