"""The audio that voices give: it goes to the utterance it says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from bargein.routes import Message

from ..answers._answer import Turns
from ..events import AgentAudio, AgentAudioComplete, AgentError
from ._playout import Playout
from ._utterance import Utterance

if TYPE_CHECKING:
    from bargein.routes import Router

log = structlog.get_logger()

_REMEMBERED = 8
"""How many problems are remembered, so as to be told once; a voice has one or two."""


class Voiced:
    """Hands the audio of a call's voices to the playout."""

    __slots__ = ("_playout", "_rate_hz", "_router", "_told", "_turns")

    def __init__(self, router: Router, turns: Turns, playout: Playout, rate_hz: int) -> None:
        self._router = router
        self._turns = turns
        self._playout = playout
        self._rate_hz = rate_hz
        self._told: tuple[tuple[str, str], ...] = ()
        router.add_sink(self._audio_given, AgentAudio)
        router.add_sink(self._audio_complete, AgentAudioComplete)

    def _audio_given(self, message: Message) -> None:
        audio: AgentAudio = message.event
        utterance = self._meant(audio.utterance, message)
        if utterance is None or utterance.finished:
            return
        if audio.sample_rate_hz != self._rate_hz:
            self._refuse_rate(message.source, audio.sample_rate_hz)
            return
        self._playout.add_audio(utterance, audio, message.at_s)

    def _refuse_rate(self, source: str, rate_hz: int) -> None:
        needed_hz = self._rate_hz
        log.error("audio_of_wrong_rate", source=source, got_hz=rate_hz, needed_hz=needed_hz)
        self._tell(source, f"gave audio at {rate_hz} Hz; this call plays {needed_hz} Hz")

    def _refuse_number(self, source: str, number: int) -> None:
        log.error("audio_of_no_utterance", source=source, utterance=number)
        known = (
            "its turn has said no text" if number == 0 else f"{self._playout.last_number} so far"
        )
        self._tell(
            source,
            f"gave audio for utterance {number}, which is nobody's ({known}): a voice takes the "
            "number from the AgentResponse that it says, as it is published, by "
            "bridge.utterance_of(message); AgentTextComplete has it, too; an agent "
            "that gives its own audio gives the text first, and leaves utterance= out",
        )

    def _tell(self, source: str, problem: str) -> None:
        """Tell a developer of a problem: once, not for every piece."""
        if (source, problem) not in self._told[-_REMEMBERED:]:
            self._told = (*self._told[-_REMEMBERED:], (source, problem))
            text = f"{source!r} {problem}"
            self._router.caught(ValueError(text))
            self._router.publish_detached(AgentError(message=text), source)

    def _audio_complete(self, message: Message) -> None:
        utterance = self._meant(message.event.utterance, message)
        if utterance is not None and not utterance.finished:
            utterance.complete_audio()
            self._playout.wake()

    def _meant(self, number: int, message: Message) -> Utterance | None:
        """Return the utterance that is meant; ``None`` if it is over, or if that is an error."""
        if 0 < number <= self._playout.last_number:
            return self._playout.utterance(number)
        turn = self._turns.of(message.run) if number == 0 else None
        if turn is not None and turn.utterances:
            return turn.utterances[-1]
        self._refuse_number(message.source, number)
        return None
