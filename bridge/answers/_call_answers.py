"""The answers of a call's agents: turns, their utterances, and how they end.

Text that an agent publishes belongs to an utterance of its turn.  In a call with audio, a voice
turns it into ``AgentAudio``, and the playout plays that; in a text-only call, text counts as heard
when it is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import structlog
import trio

from bargein.routes import Interruption, Message, Run, current_run

from .._barge_in_log import BargeIns
from .._transport import Transport
from .._verbs import Verb
from ..control._long_turns import LongRunningMarks
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
from ._answer import FixedText, Turn, Turns, end_of, lineage, verb_of
from ._answer_audio import AnswerAudio
from ._answer_handle import OwnedAnswerHandle
from ._answer_text import Texts
from ._background_answers import BackgroundAnswers
from ._cut_records import CutRecords, interruption_of
from ._history_writer import AnswerMemory
from ._say import FixedTexts

if TYPE_CHECKING:
    from .._call_context import CallContext
    from ..control._result_delivery import Delivery
    from ..control._verb_receipt import Receipt
    from ..history._history import History

log = structlog.get_logger()


class Speaking(AnswerAudio):
    """Keeps the turns of a call and follows their utterances to the caller's ear.

    Attributes:
        turn_of: Returns the unfinished turn that a run works on; ``None`` for none.
        newest_turn_of: Returns the newest turn of some agents that is neither over nor cut;
            ``None`` for none.
        turn_cut_by_itself: Returns the turn whose chain published a message that cut it.
        sounds_until_s: Returns when the player will have played all the audio it was given.
        answered: The number of the last message that started an answer of an audible agent.
        is_closed: Whether the call is over: nothing is said any more.
    """

    def __init__(
        self,
        context: CallContext,
        transport: Transport,
        delivery: Delivery,
        interrupt: Callable[[Turn | None, str], Receipt],
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
        self._turns = Turns(router, after=context.history.last_turn)
        self.turn_of = self._turns.of
        self.newest_turn_of = self._turns.newest_of
        self.turn_cut_by_itself = self._turns.cut_by_itself
        self._background = BackgroundAnswers(
            context, delivery, self._turns, self._playout, self._publish_move, self._end_moving
        )
        self._texts = Texts(context, transport, self, self._turns, self._playout, self._memory)
        TTSAudio(router, self._turns, self._playout, transport.sample_rate_hz)
        self._holding = Holding(router, self._playout, self._has_something)
        self._silent: trio.Event | None = None  # created by the first waiter
        self._closed_as: Outcome | None = None
        self.is_closed = False
        self._turns_cut = 0
        self.answered = 0
        self._ends_as: Outcome | None = None
        self._cutting = False
        self._marks = LongRunningMarks(router)
        self._barge_ins = BargeIns(context, self._turns)
        self._fixed_texts = FixedTexts(context)

    # --- what is known --------------------------------------------------------------------------

    @property
    def turns_cut(self) -> int:
        """How many answers were cut."""
        if self._router.unreported:
            self._router.report_cuts()
        return self._turns_cut

    @property
    def is_generating(self) -> bool:
        """Whether the agent that has the floor is working on an answer."""
        return self._turns.generating(self._context.floor.heard)

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
            event_class: The class of the event.  Conditions of rules are assumed to hold.

        Returns:
            False if no rule matches it, for protected speech, while the call is paused, and when
            nothing is being said or generated.
        """
        utterances = self._playout.utterances
        if utterances:
            runs = utterances[0].kept_runs
        else:
            turns = self._turns.at_work(self._context.floor.has)
            runs = [run for turn in turns for own in turn.active for run in lineage(own)]
        for run in runs:  # noqa: SIM110 - called for each event of an ear
            if run.may_be_cut_by(event_class):
                return True
        return False

    def completed_for_handler(self, interruption: Interruption) -> Interruption:
        """Complete a cut for its handler: with the generated and heard text, and the tools."""
        self.advance()
        return self._cuts.completed_for_handler(interruption)

    def complete_text(self, turn: Turn) -> None:
        """Speak the text of a turn so far, without waiting for the rest of its clause."""
        self._texts.complete(turn)

    def hold(self, reason: str) -> None:
        """Hold the voice at the sample being heard."""
        if self._context.audio and not self.is_closed:
            self._holding.hold(reason)

    def release(self, reason: str) -> None:
        """Release the hold with a reason; the voice continues if it was the last."""
        self._holding.release(reason)

    def note_pause(self, turn: Turn, message: Message) -> None:
        """Record that a turn was paused."""
        by = interruption_of(turn, message, "pause", "running")
        self._cuts.record(turn, by, turn.seen_phase)

    def ending_as(self, outcome: Outcome) -> None:
        """End turns that are cut from now on with this outcome."""
        self._ends_as = outcome

    def upgrade(self, number: int | None, verb: Verb) -> None:
        """End a cut turn by a stronger verb, if its end is not published yet."""
        for turn in self._turns:
            if turn.number == number and turn.interruption is not None:
                turn.upgrade(verb)

    def floor_moved(self) -> None:
        """Update which message the agent with the floor answers, now that the floor has moved."""
        heard = (turn.answers for turn in self._turns if self._context.floor.has(turn.agent))
        self.answered = max(self.answered, *heard, 0)

    def set_aside(self, turn: Turn) -> None:
        """Move a turn to the background, where it continues unheard and blocks nobody."""
        self._background.move(turn)
        self._holding.release_empty()

    def _publish_move(self, turn: Turn) -> None:
        self.history.add_moved(turn.number)
        self._publish_ended(turn)
        self.close_if_over(turn)

    def cut_moving(self, message: Message) -> None:
        """End turns that were moved to the background in this very step by a stronger verb."""
        for turn in self._background.pop_unpublished():
            self._end_moving(turn, interruption_of(turn, message, "moved and stopped", "running"))

    def _end_moving(self, turn: Turn, by: Interruption) -> None:
        turn.cut(by)
        self._cuts.record(turn, by, turn.seen_phase)
        turn.end(self._outcome_of_cut(turn.verb))
        self._publish_ended(turn)
        self.close_if_over(turn)

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
        self.close_if_over(utterance.turn)
        self._context.touch_state()

    async def silence(self) -> None:
        """Wait until no audible answer is being worked on, and everything said was heard or cut.

        It does not wait for agents without the floor.
        """
        while self.is_generating or not self._playout.is_idle:
            if self._silent is None:
                self._silent = trio.Event()
            await self._silent.wait()

    def say(self, response: AgentResponse, *, is_notice: bool = False) -> OwnedAnswerHandle:
        """Queue a fixed text in this step, and return its handle; a notice goes first."""
        handle = OwnedAnswerHandle(self._interrupt)
        if self._closed_as is not None:
            handle.end(self._closed_as)
            return handle
        turn = self._turns.of(current_run())
        if turn is not None and turn.outcome is None and not is_notice:
            self._texts.complete(turn)  # an answer's say() comes after its text so far
        return self._fixed_texts.say(response, handle, is_notice=is_notice)

    def handle_of(self, turn: Turn) -> OwnedAnswerHandle:
        """Return the handle of an unfinished turn; always the same one."""
        return turn.handle or turn.hand_out(OwnedAnswerHandle(self._interrupt, turn))

    def cut(self, turn: Turn, reason: str) -> None:
        """Cut one turn in this step, regardless of any condition."""
        runs = [turn.run, *turn.active]
        for run in (*runs, *(run for said in turn.utterances for run in said.runs)):
            if run is not None:
                run.cut(reason=reason)
        self._silence(turn.utterances, reason)  # text that no run produced
        self._cut_turn(turn, interruption_of(turn, None, reason, "delivered"))
        self._holding.release_empty()
        self._barge_ins.write_down()

    def leave_out_rest(self, turn: Turn) -> None:
        """Drop the unheard text of a turn that continues.

        Protected speech is still said to its end.
        """
        unheard = [each for each in turn.utterances if not each.finished]
        if all(each.interruptible for each in unheard):
            for utterance in unheard:
                utterance.leave_out_rest()
                self._playout.cut(utterance, "its rest is left out")
            self._memory.note(turn)
            self._holding.release_empty()

    def withdraw(self, turn: Turn, text: str) -> bool:
        """Take back the last text of a turn, if none of its audio was sent to the caller.

        Args:
            turn: The turn, which continues.
            text: The text; what is said from now on replaces it.

        Returns:
            Whether it was taken back, or was empty; otherwise all of it stands.
        """
        unheard = []
        for utterance in reversed(turn.utterances):
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
        self._texts.complete(turn)
        self._memory.note(turn)
        return True

    def stop_all(self, message: Message) -> None:
        """Silence utterances without a run to cut, regardless of any condition."""
        for utterance in self._playout.utterances:
            self._silence([utterance], "emergency stop")
            by = interruption_of(utterance.turn, message, "emergency stop", "delivered")
            self._cut_turn(utterance.turn, by)
        self._fixed_texts.end_unbegun(self._outcome_of_cut(verb_of(message)))
        self._holding.release_empty()
        self._barge_ins.write_down()

    def close(self, outcome: Outcome) -> None:
        """Silence everything for good, because the call is over; the heard text is final.

        Args:
            outcome: The outcome of answers that were not heard to their end.
        """
        self._texts.close()
        self._background.publish_moved()
        self._closed_as = outcome
        self.is_closed = True
        self._fixed_texts.end_unbegun(outcome)
        self._playout.close("the call is over")
        self._holding.close()

    # --- runs -----------------------------------------------------------------------------------

    def run_started(self, run: Run) -> None:
        """Start a turn when a run starts to generate an answer; further runs join it."""
        turn = self._turns.of(run)
        if turn is not None and turn.outcome is None:
            self._turns.join(turn, run)
        elif run.streams and self._context.floor.is_agent(run.source):
            self.open_turn(run, run.source)
            self._context.touch_state()

    def run_ended(self, run: Run) -> None:
        """End the text of the turn when its generation ends, for whatever reason."""
        turn = self._turns.of(run)
        if turn is None or run not in turn.active or run.outcome is None:
            return
        self._turns.leave(turn, run)
        outcome = turn.run_ended(run.outcome)
        if turn.end_job is not None:
            if not turn.active:
                self._background.publish_moved()
                self._publish_complete(turn, outcome)
                self._turns.close(turn)
                turn.end_job(outcome)
            return
        if turn.interruption is not None:
            outcome = self._outcome_of_cut(turn.verb)
        if not turn.active or (turn.interruption is not None and run is turn.run):
            self.finish(turn, outcome)

    def run_cut(self, run: Run) -> None:
        """Silence what a cut run said, in the step in which it is cut."""
        if not self._context.audio:
            self._texts.publish_heard()
        self._playout.advance(trio.current_time())
        self._silence([one for one in self._playout.utterances if one.is_stale], "barge-in")
        self._background.run_cut(run)
        for turn in self._turns:
            if turn.interruption is None and turn.descends_from(run):
                self._cut_turn(turn, run.interruption)
        self._holding.release_empty()
        self._barge_ins.write_down()

    def _silence(self, utterances: Iterable[Utterance], reason: str) -> None:
        """Cut utterances, and delay the end of their turns until the cut is recorded."""
        outer, self._cutting = self._cutting, True
        try:
            for utterance in utterances:
                self._playout.cut(utterance, reason)
        finally:
            self._cutting = outer

    def _cut_turn(self, turn: Turn, by: Interruption | None) -> None:
        """Record that a turn was cut, unless all of it had been heard by then."""
        delivered = turn.outcome is not None and turn.is_heard_whole
        if by is not None and turn.interruption is None and not delivered:
            turn.cut(by)
            self._turns_cut += 1
            phase = turn.seen_phase
            self._cuts.record(turn, by, phase)
            self._barge_ins.add(turn, by, phase)
            self._cuts.keep(turn, by)
            has_ended = turn.run is None or not turn.run.is_running
            if has_ended and not self._turns.is_begun_by(turn, by.cause):
                # Nobody will hear what its other runs still produce.
                self.finish(turn, self._outcome_of_cut(turn.verb))
        self.close_if_over(turn)

    def _outcome_of_cut(self, verb: Verb | None) -> Outcome:
        return self._ends_as or ("redirected" if verb == "redirect" else "interrupted")

    def _outcome_of(self, turn: Turn) -> Outcome:
        """Return the outcome of a turn whose generation has ended."""
        assert turn.outcome is not None
        if turn.is_given_up or turn.outcome != "completed":
            return "failed" if turn.is_given_up else turn.outcome
        if turn.interruption is not None:
            return self._outcome_of_cut(turn.verb)
        if turn.is_heard_whole:
            return "completed"
        return self._closed_as or "failed"  # the call ended first, or the voice failed

    def finish(self, turn: Turn, outcome: Outcome) -> None:
        """End the text of a turn; one that has ended keeps its outcome."""
        if turn.outcome is None:
            turn.end(outcome)
            self._texts.complete(turn)
            self._memory.remember_if_begun(turn)
            if not turn.is_said:
                self._publish_complete(turn, turn.outcome or outcome)
        self.close_if_over(turn)
        self._context.touch_state()

    def open_turn(self, run: Run | None, agent: str) -> Turn:
        """Start a turn of an agent."""
        turn = self._turns.open(run, agent)
        self._marks.watch(turn)
        trigger = run.trigger.event if run is not None and run.trigger is not None else None
        if isinstance(trigger, FixedText):
            turn.say_for(trigger.handle, is_notice=trigger.is_notice)
            self._fixed_texts.begun(trigger.handle)
        elif run is not None and run.trigger is not None:
            turn.answer_to(run.trigger.id)
            self.floor_moved()
        if isinstance(trigger, JobFinished | JobAnnounced):
            self._delivery.began(turn, trigger)
        return turn

    def _publish_complete(self, turn: Turn, outcome: Outcome) -> None:
        event = AgentGenerationComplete(outcome=outcome, content=turn.generated, turn=turn.number)
        self._router.publish_detached(event, turn.agent)

    def _publish_ended(self, turn: Turn) -> None:
        if turn.is_end_published or turn.outcome is None:
            return
        turn.mark_end_published()
        self._marks.end(turn)
        outcome = self._outcome_of(turn)
        self._memory.remember_if_begun(turn)  # written before it is published
        if turn.handle is not None:
            turn.handle.end(outcome)
        self._router.publish_detached(end_of(turn, outcome), turn.agent)
        self._delivery.ended(turn)

    def close_if_over(self, turn: Turn) -> None:
        """End a turn that was generated and heard to its end, or cut."""
        if self._cutting or self._background.is_unpublished(turn):
            return  # record the cut first; then its end is published
        if turn.is_delivered:
            if not turn.is_aside:
                self._turns.close(turn)
            if all(utterance.settled for utterance in turn.utterances):
                self._publish_ended(turn)
        if self._silent is not None and not self.is_generating and self._playout.is_idle:
            silent, self._silent = self._silent, None
            if silent is not None:  # another answer may have woken the waiters already
                silent.set()
