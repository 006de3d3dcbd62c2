"""The audio that voices give: it goes to the utterance it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bargein.routes import Message, Run

from ._ledger import Utterance
from ._playout import Playout
from ._turns import Turns
from .events import AgentAudio, AgentAudioComplete, AgentError

if TYPE_CHECKING:
    from ._call import Call

log = structlog.get_logger()


class Voiced:
    """Hands the audio of a call's voices to the playout."""

    __slots__ = ("_call", "_playout", "_rate_hz", "_turns", "_wrong_rates")

    def __init__(self, call: Call, turns: Turns, playout: Playout, rate_hz: int) -> None:
        self._call = call
        self._turns = turns
        self._playout = playout
        self._rate_hz = rate_hz
        self._wrong_rates: tuple[tuple[str, int], ...] = ()
        call.router.add_sink(self._audio_given, AgentAudio)
        call.router.add_sink(self._audio_complete, AgentAudioComplete)

    def _audio_given(self, message: Message) -> None:
        audio: AgentAudio = message.event
        utterance = self._meant(audio.utterance, message.run)
        if utterance is None or utterance.finished:
            return
        if audio.sample_rate_hz != self._rate_hz:
            self._refuse_rate(message.source, audio.sample_rate_hz)
            return
        self._playout.add_audio(utterance, audio, message.at_s)

    def _refuse_rate(self, source: str, rate_hz: int) -> None:
        needed_hz = self._rate_hz
        log.error("audio_of_wrong_rate", source=source, got_hz=rate_hz, needed_hz=needed_hz)
        if (source, rate_hz) not in self._wrong_rates:  # once, not for every piece
            self._wrong_rates += ((source, rate_hz),)
            text = f"{source!r} gave audio at {rate_hz} Hz; this call plays {needed_hz} Hz"
            self._call.router.publish_detached(AgentError(message=text), source)

    def _audio_complete(self, message: Message) -> None:
        utterance = self._meant(message.event.utterance, message.run)
        if utterance is not None and not utterance.finished:
            utterance.audio_complete = True
            self._playout.wake()

    def _meant(self, number: int, run: Run | None) -> Utterance | None:
        if number:
            return self._playout.utterance(number)
        turn = self._turns.of(run)
        return turn.utterances[-1] if turn is not None and turn.utterances else None
