"""Hands the agent's audio to the transport at the pace of hearing, and knows how far it got.

Rules:
1. At most ``LEAD_S`` of audio is ahead of what was played, so that a cut never has much to recall.
2. Audio of an utterance is not sent before the one in front of it has been heard, unless both are
   of one run: so a fence never takes away what may not be cut.
3. A cut takes effect in the step in which it happens: what is queued is gone, and the transport
   was told, before ``cut()`` returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import structlog
import trio

from ._ledger import Utterance
from ._transport import Transport

log = structlog.get_logger()

LEAD_S = 0.4
"""How much audio may be ahead of what was played.  A player needs some to bridge the jitter of a
network (150 ms is plenty on most); what is sent too early has to be recalled at a barge-in."""

CHUNK_S = 0.04
"""How much audio is handed over at a time; two frames of 20 ms."""

TICK_S = 0.2
"""How often what was heard is looked at while something plays."""

START_REPORT_S = 0.3
"""How long a player may take to report the first sound before the clock is believed."""

DONE_REPORT_S = 0.5
"""How long a reporting player may take to say that it has finished, past the expected end."""

FLUSH_REPORT_S = 0.15
"""How long a player may take to say where a cut stopped it, before the clock is believed."""


VOICE_S = 10.0
"""How long a voice may take for the next audio of a text that is complete.  A worker process that
has to be started anew takes a few seconds."""

_CLOSE_S = 1e-9
"""What sums of times are off by; nothing that is heard."""


class PlayoutListener(Protocol):
    """Who is told how the playing goes; the call."""

    def utterance_started(self, utterance: Utterance) -> None:
        """Its first sound was heard."""

    def words_heard(self, utterance: Utterance, text: str) -> None:
        """Some more of its words were heard."""

    def utterance_queued(self, utterance: Utterance) -> None:
        """All its audio was handed to the transport."""

    def voice_failed(self, utterance: Utterance) -> None:
        """Its voice gives no audio any more; it is over with what was played."""

    def utterance_finished(self, utterance: Utterance) -> None:
        """It was heard to its end, or cut."""

    def utterance_settled(self, utterance: Utterance) -> None:
        """What was heard of it will not change any more."""


class Playout:
    """The queue between synthesised audio and the caller's ear."""

    def __init__(self, transport: Transport, listener: PlayoutListener) -> None:
        self._transport = transport
        self._listener = listener
        self._utterances: list[Utterance] = []
        self._settling: dict[Utterance, float] = {}
        self._plays_until_s = 0.0
        self._player_reports = False
        self._goes_on = False
        self._chunk_bytes = int(transport.sample_rate_hz * CHUNK_S) * 2
        self._seconds_per_byte = 1 / (2 * transport.sample_rate_hz)
        self._wake = trio.Event()
        self._alarm = trio.CancelScope()
        self._looks_at_s = math.inf
        self._holds_player: Callable[[bool], None] | None = getattr(transport, "hold", None)
        self._paused = False

    @property
    def utterances(self) -> tuple[Utterance, ...]:
        """The utterances that are not heard to their end, in order."""
        return tuple(self._utterances)

    @property
    def is_idle(self) -> bool:
        """Whether nothing plays, waits, or has still to settle."""
        return not self._utterances and not self._settling

    @property
    def is_audible(self) -> bool:
        """Whether something is being heard; one utterance goes over into the next without a gap."""
        return self._goes_on or any(u.started for u in self._utterances)

    def add(self, utterance: Utterance) -> None:
        """Queue an utterance; its audio comes with ``add_audio()``."""
        self._utterances.append(utterance)

    def text_complete(self, utterance: Utterance) -> None:
        """Take note that an utterance gets no more text: now its voice has a deadline."""
        utterance.text_complete = True
        utterance.waits_since_s = max(utterance.waits_since_s, trio.current_time())
        self.wake()

    def add_audio(self, utterance: Utterance, pcm: bytes, now_s: float) -> None:
        """Queue audio of an utterance that is not over; PCM16 mono at the transport's rate."""
        utterance.waits_since_s = now_s
        size = self._chunk_bytes
        # A look that is nearly due is taken now: a steady voice costs no scheduler step of its own.
        looks = not utterance.sent_ms or now_s >= self._looks_at_s - CHUNK_S
        if not looks and 0 < len(pcm) <= size and self._is_due_at_once(utterance, now_s):
            self._send_one(utterance, pcm, now_s)
            return
        if len(pcm) > size:
            utterance.waiting.extend(pcm[at : at + size] for at in range(0, len(pcm), size))
        elif pcm:
            utterance.waiting.append(pcm)
        if looks or self._send_due(now_s) < self._looks_at_s:
            self._look(now_s)

    def _is_due_at_once(self, utterance: Utterance, now_s: float) -> bool:
        """Whether audio that just came needs no queue: the usual case, and so a quick one."""
        return (
            utterance is self._utterances[0]
            and not self._paused
            and not utterance.waiting
            and not utterance.audio_complete
            and self._plays_until_s - now_s <= LEAD_S - CHUNK_S + _CLOSE_S
        )

    def wake(self) -> None:
        """Have another look: something has changed."""
        self._wake.set()

    async def run(self) -> None:
        """Send what is due and follow what is heard, until cancelled."""
        while True:
            self._wake = trio.Event()  # first, as those who are told below may wake it
            self._alarm = trio.CancelScope()
            self._look(trio.current_time())
            with self._alarm:
                await self._wake.wait()

    def _look(self, now_s: float) -> None:
        self.advance(now_s)
        next_s = self._send_due(now_s)
        self._looks_at_s = self._alarm.deadline = min(next_s, self._next_look_s(now_s))

    def pause(self) -> None:
        """Hold the audio at the very sample that is being heard; nothing of it is lost.

        A transport without a method ``hold()`` plays what it has, at most ``LEAD_S``, and no more.
        """
        if self._paused:
            return
        now_s = trio.current_time()
        self.advance(now_s)
        self._paused = True
        if self._holds_player is not None:
            for utterance in self._utterances:
                utterance.stand(now_s)
            self._holds_player(True)
        self.wake()

    def resume(self) -> None:
        """Let the audio go on with the sample at which it was held."""
        if not self._paused:
            return
        now_s = trio.current_time()
        self._paused = False
        for utterance in self._utterances:
            utterance.waits_since_s = now_s
            if self._holds_player is not None:
                utterance.go_on(now_s)
        if self._holds_player is not None:
            self._holds_player(False)
        self._line_up(now_s)
        self.wake()

    def report(self, number: int, kind: str, played_ms: float) -> None:
        """Take in what the player reports; positions of utterances that are over are ignored."""
        if not played_ms >= 0:
            return  # negative, or no number at all
        now_s = trio.current_time()
        for index, utterance in enumerate(self._utterances):
            if utterance.number == number and utterance.sent_ms:
                self._player_reports = True
                stalled = kind == "underrun" or (self._paused and self._holds_player is not None)
                utterance.report(played_ms, now_s, stalled=stalled)
                if kind == "done" and utterance.is_all_sent:
                    utterance.done_reported = True
                for earlier in self._utterances[:index]:
                    earlier.done_reported = earlier.is_all_sent  # players play in order
                self._line_up(now_s)
                self.advance(now_s)
                self.wake()
                return
        for utterance in self._settling:
            if utterance.number == number and kind == "flushed":
                self._settle(utterance, utterance.possible_ms(played_ms))
                return

    def _line_up(self, now_s: float) -> None:
        """Let everything that was sent begin where what is in front of it ends."""
        at_s = now_s
        for utterance in self._utterances:
            if utterance.sent_ms:
                utterance.begins_at(at_s)
                at_s = max(at_s, utterance.ends_at_s)
        self._plays_until_s = at_s

    def cut(self, utterance: Utterance, reason: str) -> None:
        """Silence an utterance, now; one that is over stays as it is."""
        if utterance.finished:
            return
        now_s = trio.current_time()
        position_ms = utterance.position_ms(now_s)
        sure_ms = utterance.sure_position_ms(now_s)
        utterance.cut_at_ms = position_ms
        utterance.finished = True
        utterance.waiting.clear()
        self._utterances.remove(utterance)
        self._goes_on = False
        if utterance.sent_ms:
            self._transport.clear(utterance.number, reason)
        self._line_up(now_s)
        self._hear(utterance, sure_ms)
        if utterance.is_reported:
            self._settling[utterance] = now_s + FLUSH_REPORT_S
        self._listener.utterance_finished(utterance)
        if not utterance.is_reported:
            self._settle(utterance, position_ms)
        self._front_waits(now_s)
        self.wake()

    def close(self, reason: str) -> None:
        """Silence everything and settle what was heard, now."""
        for utterance in self.utterances:
            self.cut(utterance, reason)
        for utterance in list(self._settling):
            self._settle(utterance, utterance.position_ms(trio.current_time()))

    def _settle(self, utterance: Utterance, played_ms: float) -> None:
        self._settling.pop(utterance, None)
        if utterance.settled:
            return
        utterance.settled = True
        utterance.cut_at_ms = played_ms
        self._hear(utterance, played_ms)
        self._listener.utterance_settled(utterance)

    def _front_waits(self, now_s: float) -> None:
        """Let the time that a voice may take begin when nothing is in front any more."""
        if self._utterances:
            front = self._utterances[0]
            front.waits_since_s = max(front.waits_since_s, now_s)

    def advance(self, now_s: float) -> None:
        """Take note of what was heard by now."""
        for utterance in () if self._paused else self.utterances:
            self._advance_one(utterance, now_s)
        for utterance, deadline_s in list(self._settling.items()):
            if now_s >= deadline_s:
                self._settle(utterance, utterance.position_ms(now_s))

    def _advance_one(self, utterance: Utterance, now_s: float) -> None:
        if self._paused or utterance.finished or utterance is not self._utterances[0]:
            return  # players play in order
        self._give_up_voice(utterance, now_s)
        if not utterance.started and self._has_started(utterance, now_s):
            utterance.started = True
            self._goes_on = False
            self._listener.utterance_started(utterance)
        if not utterance.finished:
            self._hear(utterance, utterance.sure_position_ms(now_s))
        if not utterance.finished and self._is_heard(utterance, now_s):
            self._finish(utterance, now_s)

    def _finish(self, utterance: Utterance, now_s: float) -> None:
        utterance.finished = utterance.settled = True
        self._utterances.remove(utterance)
        self._goes_on = bool(self._utterances) and self._has_audio(self._utterances[0])
        self._hear(utterance, utterance.audio_ms)
        self._listener.utterance_finished(utterance)
        self._listener.utterance_settled(utterance)
        self._front_waits(now_s)
        self.wake()

    @staticmethod
    def _has_audio(utterance: Utterance) -> bool:
        return bool(utterance.sent_ms or utterance.waiting)

    def _give_up_voice(self, utterance: Utterance, now_s: float) -> None:
        if now_s >= self._voice_until_s(utterance) - _CLOSE_S:
            log.error("voice_gave_no_audio", utterance=utterance.number, waited_s=VOICE_S)
            utterance.audio_complete = True
            self._listener.voice_failed(utterance)

    def _voice_until_s(self, utterance: Utterance) -> float:
        """When a voice counts as failed; infinite while it is not its turn, or has no deadline."""
        awaited = utterance.text_complete and not utterance.audio_complete
        if not awaited or utterance.waiting or utterance is not self._utterances[0]:
            return math.inf
        ends_at_s = utterance.ends_at_s if utterance.sent_ms else 0.0
        return max(utterance.waits_since_s, ends_at_s) + VOICE_S

    def _has_started(self, utterance: Utterance, now_s: float) -> bool:
        if utterance.is_reported:
            return True
        late_s = START_REPORT_S if self._player_reports else 0.0
        return now_s >= utterance.starts_at_s + late_s

    def _is_heard(self, utterance: Utterance, now_s: float) -> bool:
        if not utterance.is_all_sent:
            return False
        if utterance.done_reported or not utterance.sent_ms:
            return True
        late_s = DONE_REPORT_S if utterance.is_reported else 0.0
        return utterance.ends_at_s + late_s <= now_s + _CLOSE_S

    def _hear(self, utterance: Utterance, played_ms: float) -> None:
        words = utterance.hear(played_ms)
        if words.strip():
            self._listener.words_heard(utterance, words)

    def _next_look_s(self, now_s: float) -> float:
        looks = list(self._settling.values())
        for utterance in () if self._paused else self._utterances:
            looks.append(self._voice_until_s(utterance))
            if utterance.starts_at_s < math.inf:
                starts_s, ends_s = utterance.starts_at_s, utterance.ends_at_s
                looks += [now_s + TICK_S, starts_s, starts_s + START_REPORT_S]
                if not utterance.audio_complete:
                    # A voice that is hardly ahead of what is heard moves its end with each chunk.
                    ends_s = max(ends_s, now_s + TICK_S / 2)
                looks += [ends_s, ends_s + DONE_REPORT_S]
        return min((look for look in looks if look > now_s), default=math.inf)

    def _send_due(self, now_s: float) -> float:
        """Send the audio whose time has come, and return when the next is due."""
        while (utterance := self._next_to_send()) is not None:
            waiting = utterance.waiting
            while waiting:
                over_s = self._plays_until_s - now_s + CHUNK_S - LEAD_S
                if over_s > _CLOSE_S:
                    self._tell_queued()
                    return now_s + over_s
                self._send_one(utterance, waiting.popleft(), now_s)
            if not utterance.audio_complete:
                break  # its voice is not ready with it, and nothing may overtake it
        self._tell_queued()
        return math.inf

    def _next_to_send(self) -> Utterance | None:
        if self._paused:
            return None
        first = None
        for utterance in self._utterances:
            first = first or utterance
            if first is not utterance and (not first.runs or first.runs != utterance.runs):
                return None
            if utterance.waiting:
                return utterance
            if not utterance.is_all_sent:
                return None  # its voice is not ready with it
        return None

    def _send_one(self, utterance: Utterance, pcm: bytes, now_s: float) -> None:
        duration_s = len(pcm) * self._seconds_per_byte
        plays_at_s = self._plays_until_s if self._plays_until_s > now_s else now_s
        utterance.sent(duration_s * 1000, now_s, plays_at_s)
        self._plays_until_s = plays_at_s + duration_s
        self._transport.play(utterance.number, pcm)
        if not utterance.started:
            self._advance_one(utterance, now_s)

    def _tell_queued(self) -> None:
        if not (self._utterances and self._utterances[0].audio_complete):
            return  # audio goes out in order
        for utterance in self.utterances:
            if not utterance.queued_told and utterance.is_all_sent:
                utterance.queued_told = True
                self._listener.utterance_queued(utterance)
