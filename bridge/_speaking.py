"""What the agents say in a call: turns, their utterances, and what becomes of them.

Text that an agent publishes belongs to an utterance of its turn.  In a call with audio a voice
turns it into ``AgentAudio`` and the playout plays it; where only text travels, it is heard when it
is sent.  A run that said something is held until that was heard: so it stays interruptible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
import trio

from routes import Interruption, Message, Run

from ._ledger import Utterance
from ._playout import Playout
from ._transport import Transport
from ._turns import FixedText, Turn, Turns, lineage, outermost, record_of, verb_of
from .control._long_running import LongRunningMarks
from .control._verbs import TurnPhase, Verb
from .events import (
    AgentAudio,
    AgentAudioComplete,
    AgentError,
    AgentGenerationComplete,
    AgentResponse,
    AgentSpeechCut,
    AgentSpeechSent,
    AgentStartedSpeaking,
    AgentStoppedSpeaking,
    AgentTextComplete,
    AgentUtteranceQueued,
    EmergencyStop,
    JobFinished,
    Outcome,
    TurnEnded,
    UserStartedSpeaking,
)

if TYPE_CHECKING:
    from ._call import Call

log = structlog.get_logger()


class Speaking:
    """Keeps the turns of a call and follows their utterances to the caller's ear."""

    def __init__(self, call: Call, transport: Transport) -> None:
        self._call = call
        self._audio = transport.audio
        self._rate_hz = transport.sample_rate_hz
        self._playout = Playout(transport, self)
        self._turns = Turns(after=call._history.last_turn)
        self._utterances = 0
        self._silent = trio.Event()
        self._newest: tuple[int, Utterance] | None = None
        self._unwritten: set[Turn] = set()
        self._closed = False
        self._wrong_rates: set[tuple[str, int]] = set()
        self.turns_cut = 0
        self._ends_as: Outcome | None = None
        self._cutting = False
        self._marks = LongRunningMarks(call)
        router = call.router
        router.observe(AgentResponse, self._response)
        router.add_sink(self._response_passed, AgentResponse)
        router.add_sink(self._audio_given, AgentAudio)
        router.add_sink(self._audio_complete, AgentAudioComplete)
        router.on(FixedText, name="call", overlap="concurrent").interrupt_on(
            [UserStartedSpeaking, EmergencyStop]
        ).map(_as_response).broadcast()

    # --- what is known --------------------------------------------------------------------------

    @property
    def is_audible_now(self) -> bool:
        """Whether the caller hears an agent at this moment."""
        return self._playout.is_audible

    @property
    def is_generating(self) -> bool:
        """Whether the agent that has the floor is working on an answer."""
        return self._turns.generating(self._call.has_floor)

    @property
    def is_pending(self) -> bool:
        """Whether something was generated and waits to be heard."""
        return bool(self._playout.utterances)

    def turn_of(self, run: Run | None) -> Turn | None:
        """Return the turn that a run works on; ``None`` if it works on none that is not over."""
        return self._turns.of(run)

    def utterance_of(self, message: Message) -> Utterance | None:
        """Return the utterance that the text of an ``AgentResponse`` message belongs to.

        Args:
            message: The message, in the step in which it is published.
        """
        if self._newest is None or self._newest[0] != message.id:
            return None
        return self._newest[1]

    def utterance(self, number: int) -> Utterance | None:
        """Return the utterance with this number, if it is not over."""
        return next((u for u in self._playout.utterances if u.number == number), None)

    @property
    def turns_aside(self) -> int:
        """How many turns go on in the background."""
        return self._turns.aside

    def current_turn(self, agents: tuple[str, ...]) -> Turn | None:
        """Return the newest turn of some agents that is neither over nor cut; ``None`` for none."""
        found = None
        for turn in self._turns:
            if turn.agent in agents and turn.interruption is None and not turn.is_delivered:
                found = turn
        return found

    def phase_of(self, turn: Turn) -> TurnPhase:
        """Return what a turn is at, as whoever interrupts it sees it."""
        if turn.outcome is not None:
            return "speaking"
        talks = turn.phase in ("text", "thinking")
        if talks and any(u.started and not u.finished for u in turn.utterances):
            return "speaking"
        if turn.phase == "thinking" and not turn.step and turn.generated:
            return "text"  # its node tells nothing of its steps
        return turn.phase

    def pause(self) -> None:
        """Hold what is being said at the sample that is being heard."""
        self._playout.pause()

    def note_pause(self, turn: Turn, message: Message) -> None:
        """Put down that a turn was paused."""
        elapsed_s = message.at_s - turn.started_at_s
        run = turn.run.id if turn.run is not None else 0
        self._record(
            turn,
            Interruption(run, "", turn.agent, message, "pause", "running", message.at_s, elapsed_s),
        )

    def resume(self) -> None:
        """Go on with the sample at which it was held."""
        self._playout.resume()

    def ending_as(self, outcome: Outcome) -> None:
        """Let turns that are cut from now on end with this outcome."""
        self._ends_as = outcome

    def upgrade(self, number: int | None, verb: Verb) -> None:
        """Let a turn that was cut, and whose end is not told yet, end by a stronger verb."""
        for turn in self._turns:
            if turn.number == number and turn.interruption is not None:
                turn.verb = verb

    def set_aside(self, turn: Turn) -> None:
        """Let a turn go on in the background: unheard, and holding up nobody."""
        turn.is_aside = True
        turn.outcome = "backgrounded"
        self._turns.set_aside(turn)
        for utterance in turn.utterances:
            if not utterance.finished:
                self._playout.cut(utterance, "moved to the background")
        for run in tuple(turn.active):
            run.set_aside()
        self._call.history.add_note(f"turn {turn.number} was moved to the background")
        self._tell_ended(turn)
        self._close_if_over(turn)

    async def run(self) -> None:
        """Play what is said, until cancelled."""
        await self._playout.run()

    def advance(self) -> None:
        """Take note of what was heard by now, and write it down."""
        self._playout.advance(trio.current_time())
        while self._unwritten:
            self._remember(self._unwritten.pop())

    def report(self, utterance: int, kind: str, played_ms: float) -> None:
        """Take in what the player reports."""
        self._playout.report(utterance, kind, played_ms)

    async def silence(self) -> None:
        """Wait until no answer is worked on that will be heard, and all that was said is over.

        An agent that thinks without having the floor is not waited for.
        """
        while self.is_generating or not self._playout.is_idle:
            await self._silent.wait()

    async def say(self, text: str, interruptible: bool) -> bool:
        """Say a fixed text, and wait until it was heard or cut."""
        wanted = FixedText(text, interruptible)
        if not self._closed:
            self._call.router.publish_detached(wanted, "call")
        if not wanted.turn:
            await trio.lowlevel.checkpoint()
            return False  # the call is over
        turn = wanted.turn[0]
        try:
            await turn.over.wait()
        except trio.Cancelled:
            assert turn.run is not None  # a fixed text is the answer of a run of its own
            turn.run.cut(reason="say() was cancelled")
            raise
        return turn.interruption is None and turn.is_heard_whole

    def stop_all(self, message: Message) -> None:
        """Silence, past every condition, what no run can be cut for any more."""
        for utterance in self._playout.utterances:
            self._cutting = True
            self._playout.cut(utterance, "emergency stop")
            self._cutting = False
            self._cut_turn(utterance.turn, message)

    def close(self) -> None:
        """Silence everything, for good: the call is over.  What was heard does not change again."""
        self._closed = True
        self._playout.close("the call is over")

    # --- runs -----------------------------------------------------------------------------------

    def run_started(self, run: Run) -> None:
        """Begin a turn when a run begins to generate an answer; further runs join it."""
        turn = self._turns.of(run)
        if turn is not None and turn.outcome is None:
            self._turns.join(turn, run)
        elif run.route.route.streams and self._call.is_agent(run.source):
            self._open_turn(run, run.source)
            self._call.touch_state()

    def run_ended(self, run: Run) -> None:
        """End the text of the turn when its generation ends, however it does."""
        turn = self._turns.of(run)
        if turn is None or run not in turn.active or run.outcome is None:
            return
        self._turns.leave(turn, run)
        if turn.is_aside:
            if not turn.active:
                self._tell_complete(turn, run.outcome)
                self._turns.close(turn)
                self._call.came_back(turn, run.outcome)
            return
        if turn.result in (None, "completed"):
            turn.result = run.outcome
        if turn.capped:
            turn.result = "capped"
        if turn.interruption is not None:
            turn.result = self._outcome_of_cut(turn)
        if not turn.active or (turn.interruption is not None and run is turn.run):
            self._finish(turn, turn.result)

    def run_cut(self, run: Run) -> None:
        """Silence what a cut run has said, in the step in which it is cut."""
        self._playout.advance(trio.current_time())
        turns = [t for t in self._turns if t.interruption is None and t.is_stale]
        self._cutting = True
        for utterance in self._playout.utterances:
            if utterance.is_stale:
                self._playout.cut(utterance, "barge-in")
        self._cutting = False
        for turn in turns:
            self._cut_turn(turn, run.interruption)

    def _cut_turn(self, turn: Turn, by: Interruption | Message | None) -> None:
        """Put down that a turn was cut, unless all of it had been heard by then."""
        if isinstance(by, Message):
            now_s = trio.current_time()
            elapsed_s = now_s - turn.started_at_s
            by = Interruption(
                0, "", turn.agent, by, "emergency stop", "delivered", now_s, elapsed_s
            )
        delivered = turn.outcome is not None and turn.is_heard_whole
        if by is not None and turn.interruption is None and not delivered:
            turn.interruption = by
            turn.verb = verb_of(by)
            self.turns_cut += 1
            self._record(turn, by)
            if turn.run is None or not turn.run.is_running:
                # What others still do for it nobody will hear.
                self._finish(turn, self._outcome_of_cut(turn))
        self._close_if_over(turn)

    def _outcome_of_cut(self, turn: Turn) -> Outcome:
        return self._ends_as or ("redirected" if turn.verb == "redirect" else "interrupted")

    def _finish(self, turn: Turn, outcome: Outcome) -> None:
        if turn.outcome is None:
            turn.outcome = outcome
            self.complete_text(turn)
            self._remember_if_begun(turn)
            if not turn.is_said:
                self._tell_complete(turn, outcome)
        self._close_if_over(turn)
        self._call.touch_state()

    def _open_turn(self, run: Run | None, agent: str) -> Turn:
        turn = self._turns.open(run, agent)
        self._marks.begin(turn)
        trigger = run.trigger.event if run is not None and run.trigger is not None else None
        if isinstance(trigger, FixedText):
            trigger.turn.append(turn)
            turn.is_said = True
        elif isinstance(trigger, JobFinished):
            self._call.delivery.began(turn, trigger)
        return turn

    def _tell_complete(self, turn: Turn, outcome: Outcome) -> None:
        event = AgentGenerationComplete(outcome=outcome, content=turn.generated, turn=turn.number)
        self._call.router.publish_detached(event, turn.agent)

    def _tell_ended(self, turn: Turn) -> None:
        if turn.is_told or turn.outcome is None:
            return
        turn.is_told = True
        self._marks.end(turn)
        outcome = turn.outcome
        if turn.interruption is not None and outcome == "completed":
            outcome = self._outcome_of_cut(turn)
        self._remember_if_begun(turn)  # what is told of a turn is written down before
        event = TurnEnded(
            turn=turn.number,
            agent=turn.agent,
            outcome=outcome,
            generated=turn.generated,
            heard=turn.heard,
            capped=turn.capped,
        )
        self._call.router.publish_detached(event, turn.agent)
        self._call.delivery.ended(turn)

    def complete_text(self, turn: Turn) -> None:
        """Take note that what a turn has said so far is whole: the rest of a clause is said now."""
        for utterance in turn.utterances:
            if not utterance.text_complete:
                self._playout.text_complete(utterance)
                if not utterance.finished:
                    complete = AgentTextComplete(utterance=utterance.number)
                    self._call.router.publish(complete, turn.agent, utterance.run)

    def _close_if_over(self, turn: Turn) -> None:
        if self._cutting:
            return  # the cut is put down first, then its end is told
        if turn.is_delivered:
            if not turn.is_aside:
                self._turns.close(turn)
            if all(utterance.settled for utterance in turn.utterances):
                self._tell_ended(turn)
        if not self.is_generating and self._playout.is_idle:
            self._silent.set()
            self._silent = trio.Event()

    # --- text -----------------------------------------------------------------------------------

    def _response(self, message: Message) -> None:
        if self._closed or not self._call.is_audible(message):
            log.debug("unheard_agent", source=message.source)
            return
        response: AgentResponse = message.event
        run = message.run
        turn = self._turns.of(run)
        if turn is not None and turn.is_aside:
            turn.aside.append(response.content)
            return
        if turn is None or turn.outcome is not None:
            turn = self._open_turn(outermost(run), message.source)
        self._turns.join(turn, run)
        utterance = self._utterance_for(turn, run, response.interruptible)
        if not turn.generated:
            self._remember(turn)  # takes its place in the history's order
        utterance.generated += response.content
        self._newest = (message.id, utterance)
        self._unwritten.add(turn)

    def _response_passed(self, message: Message) -> None:
        utterance = self.utterance_of(message)
        if utterance is None:
            return
        turn = utterance.turn
        if not self._audio:
            self._heard_as_sent(turn, utterance, message.event.content)
        if not turn.active:
            self._finish(turn, "completed")  # no run will end it

    def _utterance_for(self, turn: Turn, run: Run | None, interruptible: bool) -> Utterance:
        last = turn.utterances[-1] if turn.utterances else None
        if last is not None and last.interruptible == interruptible and not last.text_complete:
            if run is not None and run not in last.runs:
                self._hold(last, run)
            return last
        self.complete_text(turn)
        self._utterances += 1
        utterance = Utterance(self._utterances, turn, interruptible)
        turn.utterances.append(utterance)
        if self._audio:
            self._playout.add(utterance)
        if run is not None:
            self._hold(utterance, run)
        return utterance

    def _hold(self, utterance: Utterance, run: Run) -> None:
        """Keep a run that gives text interruptible until that was heard."""
        utterance.runs.append(run)
        for holder in lineage(run) if self._audio else ():
            holder.hold()
            utterance.held.append(holder)
            if not utterance.interruptible:
                holder.protect()

    def _let_go(self, utterance: Utterance) -> None:
        held, utterance.held = utterance.held, []
        for holder in held:
            holder.release()
            if not utterance.interruptible:
                holder.unprotect()

    def _heard_as_sent(self, turn: Turn, utterance: Utterance, content: str) -> None:
        utterance.basis = "text"
        utterance.hear_all()
        utterance.finished = utterance.settled = True
        self._remember(turn)
        sent = AgentSpeechSent(content=content, utterance=utterance.number)
        self._call.router.publish(sent, turn.agent, utterance.run)

    # --- audio ----------------------------------------------------------------------------------

    def _audio_given(self, message: Message) -> None:
        audio: AgentAudio = message.event
        utterance = self._meant(audio.utterance, message)
        if utterance is None or utterance.finished:
            return
        if audio.sample_rate_hz != self._rate_hz:
            self._refuse_rate(message.source, audio.sample_rate_hz)
            return
        utterance.add_audio(audio)
        self._playout.add_audio(utterance, audio.pcm, message.at_s)

    def _refuse_rate(self, source: str, rate_hz: int) -> None:
        needed_hz = self._rate_hz
        log.error("audio_of_wrong_rate", source=source, got_hz=rate_hz, needed_hz=needed_hz)
        if (source, rate_hz) not in self._wrong_rates:  # once, not for every piece
            self._wrong_rates.add((source, rate_hz))
            text = f"{source!r} gave audio at {rate_hz} Hz; this call plays {needed_hz} Hz"
            self._call.router.publish_detached(AgentError(message=text), source)

    def _audio_complete(self, message: Message) -> None:
        utterance = self._meant(message.event.utterance, message)
        if utterance is not None and not utterance.finished:
            utterance.audio_complete = True
            self._playout.wake()

    def _meant(self, number: int, message: Message) -> Utterance | None:
        if number:
            return self.utterance(number)
        turn = self._turns.of(message.run)
        return turn.utterances[-1] if turn is not None and turn.utterances else None

    # --- what the playout tells -------------------------------------------------------------------

    def utterance_started(self, utterance: Utterance) -> None:
        """Tell that the agent has begun to speak."""
        self._tell(utterance, AgentStartedSpeaking(utterance=utterance.number))

    def words_heard(self, utterance: Utterance, text: str) -> None:
        """Remember and tell what was heard."""
        self._remember(utterance.turn)  # a word that is told is written down
        self._tell(utterance, AgentSpeechSent(content=text, utterance=utterance.number))

    def utterance_queued(self, utterance: Utterance) -> None:
        """Tell that the transport has all audio of it."""
        self._tell(utterance, AgentUtteranceQueued(utterance=utterance.number))

    def voice_failed(self, utterance: Utterance) -> None:
        """Tell that the rest of an utterance will not be said."""
        text = f"the voice gave no audio for utterance {utterance.number}; its rest is left out"
        self._tell(utterance, AgentError(message=text))

    def utterance_finished(self, utterance: Utterance) -> None:
        """Let the run go that said it, and tell that the agent has fallen silent."""
        self._let_go(utterance)
        if utterance.started:
            cut = utterance.is_cut or not utterance.is_heard_whole
            self._tell(utterance, AgentStoppedSpeaking(utterance=utterance.number, cut=cut))

    def utterance_settled(self, utterance: Utterance) -> None:
        """Tell what of a cut utterance was heard, now that it is known."""
        turn = utterance.turn
        self._unwritten.add(turn)
        if utterance.is_cut:
            cut = AgentSpeechCut(
                utterance=utterance.number,
                heard=utterance.heard,
                unheard=utterance.generated[utterance.heard_chars :],
                at_ms=utterance.cut_at_ms or 0.0,
                basis=utterance.basis,
            )
            self._tell(utterance, cut)
        self._close_if_over(turn)
        self._call.touch_state()

    def _tell(self, utterance: Utterance, event: object) -> None:
        # These are facts about the caller's ear: they stand whether the run was cut or not.
        self._call.router.publish_detached(event, utterance.turn.agent)

    # --- memory -----------------------------------------------------------------------------------

    def _remember_if_begun(self, turn: Turn) -> None:
        if turn.generated:
            self._remember(turn)

    def _remember(self, turn: Turn) -> None:
        history = self._call._history
        history.set_agent(turn.number, turn.agent, turn.generated, turn.heard, turn.basis)

    def _record(self, turn: Turn, interruption: Interruption) -> None:
        record = record_of(turn, interruption, self.phase_of(turn))
        self._call._history.set_interruption(record, turn.agent)


def _as_response(message: Message) -> AgentResponse:
    wanted: FixedText = message.event
    return AgentResponse(content=wanted.content, interruptible=wanted.interruptible)
