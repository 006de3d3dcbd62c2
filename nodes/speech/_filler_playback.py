"""Plays the notices whose sound was prepared, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bargein.bridge.events import AgentAudio, AgentAudioComplete, AgentResponse

from ._clause_audio import ClauseAudio
from ._late_answer_fillers import SilenceFiller, SpokenFillers

if TYPE_CHECKING:
    from bargein.bridge import Bridge, Message


class PreparedNotices:
    """The notices of one call that need no voice any more."""

    def __init__(self, bridge: Bridge, fillers: SpokenFillers) -> None:
        """Play over a bridge.

        Args:
            bridge: The voice's bridge.
            fillers: The prepared sounds.
        """
        self._bridge = bridge
        self._fillers = fillers
        self._playing: set[int] = set()

    def play(self, number: int, message: Message) -> bool:
        """Play a text, if it is a notice and has a sound; return whether it did.

        Args:
            number: The utterance of the text.
            message: The message with the text.
        """
        text = message.event.content
        sound = self._fillers.sound_of(text) if self._bridge.is_notice(message) else None
        if sound is None or not sound.pieces:
            return False
        rate_hz = self._bridge.output_rate_hz
        resampled = ClauseAudio(sound.rate_hz, rate_hz)
        for index, piece in enumerate(sound.pieces, 1):
            last = index == len(sound.pieces)
            pcm, words = resampled.push(piece.pcm, piece.words, last=last)
            audio = AgentAudio(pcm, rate_hz, text, words, last=last, utterance=number)
            self._bridge.publish_for(audio, message)
            text = ""
        self._playing.add(number)
        self._bridge.publish_for(AgentAudioComplete(utterance=number), message)
        return True

    def finish(self, number: int) -> bool:
        """Return whether an utterance was played from here, when its text is complete."""
        was_played = number in self._playing
        self._playing.discard(number)
        return was_played

    def forget_cut(self) -> None:
        """Forget interrupted utterances, whose text never ends."""
        played = self._bridge.played_ms
        self._playing = {number for number in self._playing if played(number) is not None}


class NoticesOfSelfSpeakers:
    """Fills silence in a call without a voice, whose agent speaks itself."""

    def __init__(self, bridge: Bridge, fillers: SpokenFillers) -> None:
        """Declare the routes.

        Args:
            bridge: A bridge for the notices, not an agent's.
            fillers: Their sounds.
        """
        self._bridge = bridge
        self._notices = PreparedNotices(bridge, fillers)
        bridge.on(AgentResponse, where=bridge.needs_voice).map(self._play)
        SilenceFiller(bridge, fillers, say_waiting=lambda: False, wanted=self._is_wanted)

    def _is_wanted(self) -> bool:
        """Whether an agent of the call speaks: where all answer in writing, no sound is due."""
        nodes = (other.node for other in self._bridge.call.bridges)
        return any(getattr(node, "speaks_itself", False) for node in nodes)

    def _play(self, message: Message) -> None:
        number = self._bridge.utterance_of(message)
        if number is not None:
            self._notices.forget_cut()
            self._notices.play(number, message)
