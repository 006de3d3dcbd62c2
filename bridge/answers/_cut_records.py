"""Records the cuts of answers, and passes the records to the handlers of their chains."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import trio

from bargein.routes import Interruption, Message, Outcome, Phase

from .._verbs import AnswerPhase, Verb
from ..history._entries import AgentEntry, InterruptionRecord, directive_of
from ._answer import Answer, OpenAnswers, verb_of
from ._barge_in_log import BargeInLog

if TYPE_CHECKING:
    from ..context._call_context import CallContext

CUT_RUNS_KEPT = 32
"""For how many cut runs their answer is remembered."""


class CutRecords:
    """The cuts of one call's answers, and how these end."""

    __slots__ = ("_count", "_cut_runs", "_ends_as", "_history", "_log", "_router", "write_log")

    def __init__(self, context: CallContext, answers: OpenAnswers) -> None:
        self._history = context.history
        self._router = context.router
        self._log = BargeInLog(context, answers)
        self.write_log = self._log.write_down
        self._cut_runs: list[tuple[int, int]] = []  # each with its answer
        self._count = 0
        self._ends_as: Outcome | None = None

    @property
    def count(self) -> int:
        """How many answers were cut."""
        if self._router.unreported:
            self._router.report_cuts()
        return self._count

    def end_as(self, outcome: Outcome) -> None:
        """End answers that are cut from now on with this outcome."""
        self._ends_as = outcome

    def outcome_by(self, verb: Verb | None) -> Outcome:
        """Return how an answer ends that a verb, or a rule, cut."""
        return self._ends_as or ("redirected" if verb == "redirect" else "interrupted")

    def cut(self, answer: Answer, by: Interruption) -> None:
        """Cut an answer, record what it was doing, and log it."""
        answer.cut(by)
        self._count += 1
        phase = answer.seen_phase
        self.record(answer, by, phase)
        self._log.add(answer, by, phase)
        self._keep(answer, by)

    def note_pause(self, answer: Answer, message: Message) -> None:
        """Record that an answer was paused."""
        by = interruption_of(answer, message, "pause", "running")
        self.record(answer, by, answer.seen_phase)

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

    def _keep(self, answer: Answer, by: Interruption) -> None:
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
