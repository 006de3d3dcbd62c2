"""The answers of a call's agents, their utterances, and how they end.

Text that an agent publishes belongs to an utterance of its answer.  In a call with audio, a voice
turns it into ``AgentAudio``, and the playout plays that; in a text-only call, text counts as heard
when it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import trio

from bargein.routes import Interruption, Message, Run, current_run
from bargein.routes.logs import get_logger

from .._verbs import Verb
from ..control._long_answers import LongRunningMarks
from ..events import (
    AgentGenerationComplete,
    AgentResponse,
    JobAnnounced,
    JobFinished,
    Outcome,
)
from ..playout._hold import Holding
from ..playout._playout import Playout
from ..playout._playout_events import PlayoutEvents
from ..playout._tts_audio import TTSAudio
from ..playout._utterance import Utterance
from ..transport._protocol import Transport
from ._answer import Answer, FixedText, KeyMenu, OpenAnswers, end_of, lineage, verb_of
from ._answer_audio import AnswerAudio
from ._answer_handle import OwnedAnswerHandle
from ._answer_history import AnswerHistory
from ._answer_text import AnswerText
from ._background_answers import BackgroundAnswers
from ._barge_in_log import BargeInLog
from ._cut_records import CutRecords, interruption_of
from ._history_writer import AnswerMemory
from ._say import FixedTexts

if TYPE_CHECKING:
    from .._call_context import CallContext
    from ..control._result_delivery import Delivery
    from ..control._verb_receipt import Receipt
    from ..history._history import History

log = get_logger()


class CallAnswers(AnswerHistory, AnswerAudio):
    """Keeps the answers of a call and follows their utterances to the caller's ear.

    Attributes:
        answer_of: Returns the unfinished answer that a run works on; ``None`` for none.
        newest_answer_of: Returns the newest answer of some agents that is neither over nor cut;
            ``None`` for none.
        answer_cut_by_itself: Returns the answer whose chain published a message that cut it.
        sounds_until_s: Returns when the player will have played all the audio it was given.
        answered: The number of the last message that started an answer of an audible agent.
        is_closed: Whether the call is over: nothing is said any more.
    """

    def __init__(
        self,
        context: CallContext,
        transport: Transport,
        delivery: Delivery,
        interrupt: Callable[[Answer | None, str], Receipt],
    ) -> None:
        """Start without answers.

        Args:
            context: The call's.
            transport: The caller's side.
            delivery: Delivers the results of background answers.
            interrupt: Cuts one answer, for its handle.
        """
        router = context.router
        self._context = context
        self._router = router
        self._delivery = delivery
        self._interrupt = interrupt
        self._memory = AnswerMemory(context.history)
        self._cuts = CutRecords(context.history)
        self._events = PlayoutEvents(router, self._memory, self._utterance_settled)
        playout = self._playout = Playout(transport, self._events, router.call_at)
        self.sounds_until_s = playout.sounds_until_s
        self._answers = OpenAnswers(router, after=context.history.last_answer)
        self.answer_of = self._answers.of
        self.newest_answer_of = self._answers.newest_of
        self.answer_cut_by_itself = self._answers.cut_by_itself
        self._background = BackgroundAnswers(
            context, delivery, self._answers, self._playout, self._publish_move, self._end_moving
        )
        self._text = AnswerText(
            context, transport, self, self._answers, self._playout, self._memory
        )
        TTSAudio(router, self._answers, self._playout, transport.sample_rate_hz)
        self._holding = Holding(router, self._playout, self._has_something)
        self._silent: trio.Event | None = None  # created by the first waiter
        self._closed_as: Outcome | None = None
        self.is_closed = False
        self._answers_cut = 0
        self.answered = 0
        self._ends_as: Outcome | None = None
        self._cutting = False
        self._marks = LongRunningMarks(router)
        self._barge_in_log = BargeInLog(context, self._answers)
        self._fixed_texts = FixedTexts(context)

    # --- what is known --------------------------------------------------------------------------

    @property
    def answers_cut(self) -> int:
        """How many answers were cut."""
        if self._router.unreported:
            self._router.report_cuts()
        return self._answers_cut

    @property
    def is_generating(self) -> bool:
        """Whether the agent that has the floor is working on an answer."""
        return self._answers.generating(self._context.floor.heard)

    @property
    def is_held(self) -> bool:
        """Whether anything holds the agent's voice."""
        return bool(self._holding.reasons)

    @property
    def is_held_until_released(self) -> bool:
        """Whether a pause or a lost connection holds the voice, until it is released."""
        return self._holding.lasts

    def may_be_cut_by(self, event_class: type) -> bool:
        """Return whether an event would cut what is heard now or, if nothing is, generated.

        Args:
            event_class: The class of the event.  Conditions of rules are assumed to be met.

        Returns:
            False if no rule matches it, for protected speech, while the call is paused, and when
            nothing is being said or generated.
        """
        utterances = self._playout.utterances
        if utterances:
            runs = utterances[0].unsettled_runs
        else:
            answers = self._answers.at_work(self._context.floor.has)
            runs = [run for answer in answers for own in answer.active for run in lineage(own)]
        for run in runs:  # noqa: SIM110 - called for each event of an ear
            if run.may_be_cut_by(event_class):
                return True
        return False

    def completed_for_handler(self, interruption: Interruption) -> Interruption:
        """Complete a cut for its handler: with the generated and heard text, and the tools."""
        self.advance()
        return self._cuts.completed_for_handler(interruption)

    def complete_text(self, answer: Answer) -> None:
        """Speak the text of an answer so far, without waiting for the rest of its clause."""
        self._text.complete(answer)

    def hold(self, reason: str) -> None:
        """Hold the voice at the sample being heard."""
        if self._context.audio and not self.is_closed:
            self._holding.hold(reason)

    def release(self, reason: str) -> None:
        """Release the hold with a reason; the voice continues if it was the last."""
        self._holding.release(reason)

    def note_pause(self, answer: Answer, message: Message) -> None:
        """Record that an answer was paused."""
        by = interruption_of(answer, message, "pause", "running")
        self._cuts.record(answer, by, answer.seen_phase)

    def end_cuts_as(self, outcome: Outcome) -> None:
        """End answers that are cut from now on with this outcome."""
        self._ends_as = outcome

    def upgrade(self, number: int | None, verb: Verb) -> None:
        """Name a stronger verb in the record of a cut answer, and in its end if that is to come."""
        self.advance()
        for answer in self._answers:
            if answer.number == number and answer.interruption is not None:
                answer.upgrade(verb)
        self._cuts.upgrade(number, verb)

    def floor_moved(self) -> None:
        """Update which message the agent with the floor answers, now that the floor has moved."""
        heard = (
            answer.trigger_id for answer in self._answers if self._context.floor.has(answer.agent)
        )
        self.answered = max(self.answered, *heard, 0)

    def move_to_background(self, answer: Answer) -> None:
        """Move an answer to the background, where it continues unheard and blocks nobody."""
        self._background.move(answer)
        self._holding.release_empty()

    def _publish_move(self, answer: Answer) -> None:
        self.history.add_moved(answer.number)
        self._publish_ended(answer)
        self.close_if_over(answer)

    def cut_moving(self, message: Message) -> None:
        """End answers that were moved to the background in this very step by a stronger verb."""
        for answer in self._background.pop_unpublished():
            self._end_moving(
                answer, interruption_of(answer, message, "moved and stopped", "running")
            )

    def _end_moving(self, answer: Answer, by: Interruption) -> None:
        answer.cut(by)
        self._cuts.record(answer, by, answer.seen_phase)
        answer.end(self._outcome_of_cut(answer.verb))
        self._publish_ended(answer)
        self.close_if_over(answer)

    def advance(self) -> None:
        """Update what the caller has heard, and write it to the history."""
        if self._router.unreported:
            self._router.report_cuts()
        self._playout.advance(trio.current_time())
        self._memory.write()

    @property
    def history(self) -> History:
        """What was said until now."""
        if self._router.unreported:
            self._router.report_cuts()
        self._playout.advance(trio.current_time())
        self._memory.write()
        return self._context.history

    def _has_something(self) -> bool:
        return self.is_pending or self.is_generating

    def _utterance_settled(self, utterance: Utterance) -> None:
        self.close_if_over(utterance.answer)
        self._context.touch_state()

    async def silence(self) -> None:
        """Wait until no audible answer is being worked on, and everything said was heard or cut.

        It does not wait for agents without the floor.
        """
        while self.is_generating or not self._playout.is_idle:
            if self._silent is None:
                self._silent = trio.Event()
            await self._silent.wait()

    def say(
        self, response: AgentResponse, *, is_notice: bool = False, stop_on_key: bool = False
    ) -> OwnedAnswerHandle:
        """Queue a fixed text in this step, and return its handle; a notice goes first."""
        handle = OwnedAnswerHandle(self._interrupt)
        if self._closed_as is not None:
            handle.end(self._closed_as)
            return handle
        answer = self._answers.of(current_run())
        if answer is not None and answer.outcome is None and not is_notice:
            self._text.complete(answer)  # an answer's say() comes after its text so far
            answer.note_text()
        kind = KeyMenu if stop_on_key else FixedText
        return self._fixed_texts.say(kind(response, handle, is_notice))

    def handle_of(self, answer: Answer) -> OwnedAnswerHandle:
        """Return the handle of an unfinished answer; always the same one."""
        return answer.handle or answer.hand_out(OwnedAnswerHandle(self._interrupt, answer))

    def cut(self, answer: Answer, reason: str) -> None:
        """Cut one answer in this step, regardless of any condition."""
        runs = [answer.run, *answer.active]
        for run in (*runs, *(run for said in answer.utterances for run in said.runs)):
            if run is not None:
                run.cut(reason=reason)
        self._silence(answer.utterances, reason)  # text that no run produced
        self._cut_answer(answer, interruption_of(answer, None, reason, "delivered"))
        self._holding.release_empty()
        self._barge_in_log.write_down()

    def leave_out_rest(self, answer: Answer) -> None:
        """Drop the unheard text of an answer that continues.

        Protected speech is still said to its end.
        """
        unheard = [each for each in answer.utterances if not each.finished]
        if all(each.interruptible for each in unheard):
            for utterance in unheard:
                utterance.leave_out_rest()
                self._playout.cut(utterance, "its rest is left out")
            self._memory.note(answer)
            self._holding.release_empty()

    def withdraw(self, answer: Answer, text: str) -> bool:
        """Take back the last text of an answer, if none of its audio was sent to the caller.

        Args:
            answer: The answer, which continues.
            text: The text; what is said from now on replaces it.

        Returns:
            Whether it was taken back, or was empty; otherwise all of it stands.
        """
        unheard = []
        for utterance in reversed(answer.utterances):
            if not text:
                break
            is_on_its_way = utterance.finished or utterance.started or utterance.sent_ms
            if is_on_its_way or not text.endswith(utterance.generated):
                return False
            text = text.removesuffix(utterance.generated)
            unheard.append(utterance)
        if text:
            return False  # some of it is still on its way, or nobody was going to hear it
        for utterance in unheard:
            utterance.leave_out_rest()
            self._playout.cut(utterance, "said anew")
        self._text.complete(answer)
        self._memory.note(answer)
        return True

    def stop_all(self, message: Message) -> None:
        """Silence utterances without a run to cut, regardless of any condition."""
        for utterance in self._playout.utterances:
            self._silence([utterance], "emergency stop")
            by = interruption_of(utterance.answer, message, "emergency stop", "delivered")
            self._cut_answer(utterance.answer, by)
        self._fixed_texts.end_unbegun(self._outcome_of_cut(verb_of(message)))
        self._holding.release_empty()
        self._barge_in_log.write_down()

    def close(self, outcome: Outcome) -> None:
        """Silence everything for good, because the call is over; the heard text is final.

        Args:
            outcome: The outcome of answers that were not heard to their end.
        """
        self._text.close()
        self._background.publish_moved()
        self._closed_as = outcome
        self.is_closed = True
        self._fixed_texts.end_unbegun(outcome)
        self._playout.close("the call is over")
        self._holding.close()

    # --- runs -----------------------------------------------------------------------------------

    def run_started(self, run: Run) -> None:
        """Start an answer when a run starts to generate; further runs join it."""
        answer = self._answers.of(run)
        if answer is not None and answer.outcome is None:
            self._answers.join(answer, run)
        elif run.streams and self._context.floor.is_agent(run.source):
            self.open_answer(run, run.source)
            self._context.touch_state()

    def run_ended(self, run: Run) -> None:
        """End the text of the answer when its generation ends, for whatever reason."""
        answer = self._answers.of(run)
        if answer is None or run not in answer.active or run.outcome is None:
            return
        self._answers.leave(answer, run)
        outcome = answer.run_ended(run.outcome)
        if answer.end_job is not None:
            if not answer.active:
                self._background.publish_moved()
                self._publish_complete(answer, outcome)
                self._answers.close(answer)
                answer.end_job(outcome)
            return
        if answer.interruption is not None:
            outcome = self._outcome_of_cut(answer.verb)
        if not answer.active or (answer.interruption is not None and run is answer.run):
            self.finish(answer, outcome)

    def run_cut(self, run: Run) -> None:
        """Silence what a cut run said, in the step in which it is cut."""
        if not self._context.audio:
            self._text.publish_heard()
        self._playout.advance(trio.current_time())
        self._silence([one for one in self._playout.utterances if one.is_stale], "barge-in")
        self._background.run_cut(run)
        for answer in self._answers:
            if answer.interruption is None and answer.descends_from(run):
                self._cut_answer(answer, run.interruption)
        self._holding.release_empty()
        self._barge_in_log.write_down()

    def _silence(self, utterances: Iterable[Utterance], reason: str) -> None:
        """Cut utterances, and delay the end of their answers until the cut is recorded."""
        outer, self._cutting = self._cutting, True
        try:
            for utterance in utterances:
                self._playout.cut(utterance, reason)
        finally:
            self._cutting = outer

    def _cut_answer(self, answer: Answer, by: Interruption | None) -> None:
        """Record that an answer was cut, unless all of it had been heard by then."""
        delivered = answer.outcome is not None and answer.is_heard_whole
        if by is not None and answer.interruption is None and not delivered:
            answer.cut(by)
            self._answers_cut += 1
            phase = answer.seen_phase
            self._cuts.record(answer, by, phase)
            self._barge_in_log.add(answer, by, phase)
            self._cuts.keep(answer, by)
            has_ended = answer.run is None or not answer.run.is_running
            if has_ended and not self._answers.is_begun_by(answer, by.cause):
                # Nobody will hear what its other runs still produce.
                self.finish(answer, self._outcome_of_cut(answer.verb))
        self.close_if_over(answer)

    def _outcome_of_cut(self, verb: Verb | None) -> Outcome:
        return self._ends_as or ("redirected" if verb == "redirect" else "interrupted")

    def _outcome_of(self, answer: Answer) -> Outcome:
        """Return the outcome of an answer whose generation has ended."""
        assert answer.outcome is not None
        if answer.is_given_up or answer.outcome != "completed":
            return "failed" if answer.is_given_up else answer.outcome
        if answer.interruption is not None:
            return self._outcome_of_cut(answer.verb)
        if answer.is_heard_whole:
            return "completed"
        return self._closed_as or "failed"  # the call ended first, or the voice failed

    def finish(self, answer: Answer, outcome: Outcome) -> None:
        """End the text of an answer; one that has ended keeps its outcome."""
        if answer.outcome is None:
            answer.end(outcome)
            self._text.complete(answer)
            self._memory.remember_if_begun(answer)
            if not answer.is_said:
                self._publish_complete(answer, answer.outcome or outcome)
        self.close_if_over(answer)
        self._context.touch_state()

    def open_answer(self, run: Run | None, agent: str) -> Answer:
        """Start an answer of an agent."""
        answer = self._answers.open(run, agent)
        self._marks.watch(answer)
        trigger = run.trigger.event if run is not None and run.trigger is not None else None
        if isinstance(trigger, FixedText):
            answer.say_for(trigger.handle, is_notice=trigger.is_notice)
            self._fixed_texts.begun(trigger)
        elif run is not None and run.trigger is not None:
            answer.set_trigger(run.trigger.id)
            self.floor_moved()
        if isinstance(trigger, JobFinished | JobAnnounced):
            self._delivery.began(answer, trigger)
        return answer

    def _publish_complete(self, answer: Answer, outcome: Outcome) -> None:
        event = AgentGenerationComplete(
            outcome=outcome, content=answer.generated, answer=answer.number
        )
        self._router.publish_detached(event, answer.agent)

    def _publish_ended(self, answer: Answer) -> None:
        if answer.is_end_published or answer.outcome is None:
            return
        answer.mark_end_published()
        self._marks.end(answer)
        outcome = self._outcome_of(answer)
        self._memory.remember_if_begun(answer)  # written before it is published
        if answer.handle is not None:
            answer.handle.end(outcome)
        self._router.publish_detached(end_of(answer, outcome), answer.agent)
        self._delivery.ended(answer)

    def close_if_over(self, answer: Answer) -> None:
        """End an answer that was generated and heard to its end, or cut."""
        if self._cutting or self._background.is_unpublished(answer):
            return  # record the cut first; then its end is published
        if answer.is_delivered:
            if not answer.is_in_background:
                self._answers.close(answer)
            if all(utterance.settled for utterance in answer.utterances):
                self._publish_ended(answer)
        if self._silent is not None and not self.is_generating and self._playout.is_idle:
            silent, self._silent = self._silent, None
            if silent is not None:  # another answer may have woken the waiters already
                silent.set()
