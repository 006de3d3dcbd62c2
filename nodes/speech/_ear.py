"""Hears one caller: frames in, turns out.

Rules:
1. Speech begins after two voiced windows in a row (64 ms): fast enough for a barge-in, too long for
   a click.
2. The first silence starts the recogniser and the end-of-turn model at once, both on what was said
   so far; if the caller goes on, their work is thrown away.
3. A turn ends when the model hears that it is complete; else after a silence that is the longer
   the surer the model is that more will come, and a second at most.
4. Each start is followed by exactly one stop, also when the microphone falls silent in mid-word.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import structlog
import trio

from bridge.events import (
    LogMetric,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    UserTranscriptionReceived,
)

from ._protocols import EndOfTurn, SpeechToText, VoiceActivity

if TYPE_CHECKING:
    from bridge import Bridge, Message

log = structlog.get_logger()

SAMPLE_RATE_HZ = 16_000
BYTES_PER_S = 2 * SAMPLE_RATE_HZ

LONGEST_PART_S = 24.0
"""Whisper hears at most 30 s at once; longer speech is transcribed in parts."""

MICROPHONE_LOST_S = 1.0
"""How long frames may stay away in mid-speech before the turn is taken to be over."""


@dataclass(frozen=True, slots=True)
class ListeningSettings:
    """When speech begins and when a turn ends."""

    speech_above: float = 0.5
    """A window is voiced from this probability on (Silero VAD's own default)."""
    silence_below: float = 0.35
    """A window is silent below this one (Silero's default: 0.15 under the other)."""
    onset_windows: int = 2
    """Voiced windows in a row, 32 ms each, that begin speech."""
    pause_s: float = 0.2
    """Silence after which recogniser and end-of-turn model begin."""
    complete_above: float = 0.5
    """A turn is complete from this probability on (Smart Turn's own threshold)."""
    longest_pause_s: float = 1.0
    """Silence that ends a turn which the model is sure is not complete; the less sure it is, the
    shorter the wait, down to `pause_s`."""
    pre_roll_s: float = 0.35
    """Sound from before the onset that the recogniser gets too."""


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """The caller fell silent; perhaps the turn is over."""

    parts: tuple[bytes, ...]
    since_s: float
    """When the last voiced window ended, in seconds of trio's clock."""


@dataclass(frozen=True, slots=True)
class SpeechResumed:
    """The caller went on."""


@dataclass(frozen=True, slots=True)
class SpeechBegan:
    """The caller began a turn; somebody has to see to it that it ends."""


@dataclass(slots=True)
class _Words:
    """What the recogniser makes of a turn, part by part."""

    parts: list[str] = field(default_factory=list)
    took_s: float = 0.0


class Ear:
    """Follows the microphone of one call."""

    def __init__(
        self,
        bridge: Bridge,
        vad: VoiceActivity,
        stt: SpeechToText,
        end_of_turn: EndOfTurn,
        settings: ListeningSettings,
    ) -> None:
        """Declare the routes of hearing.

        Args:
            bridge: Where; no agent's.
            vad: This call's own detector.
            stt: The recogniser, shared by all calls.
            end_of_turn: The end-of-turn model, shared by all calls.
            settings: When speech begins and ends.
        """
        self._bridge = bridge
        self._vad = vad
        self._stt = stt
        self._end_of_turn = end_of_turn
        self._settings = settings
        self._window_bytes = 2 * vad.frame_samples
        self._window_s = vad.frame_samples / SAMPLE_RATE_HZ
        self._waiting = bytearray()
        windows = max(1, round(settings.pre_roll_s / self._window_s))
        self._pre_roll: deque[bytes] = deque(maxlen=windows)
        self._parts: list[bytes] = []
        self._part = bytearray()
        self._speaking = False
        self._paused = False
        self._voiced = 0
        self._silent_s = 0.0
        self._last_voice_s = 0.0
        self._last_frame_s = 0.0
        bridge.on(UserAudio, source="caller").map(self.hear)
        bridge.on(SpeechPaused, overlap="restart").interrupt_on(SpeechResumed).map(self._decide)
        bridge.on(SpeechBegan, overlap="restart").map(self._guard)

    def hear(self, message: Message) -> None:
        """Take in a frame; publishes what it changes in the same step.

        Args:
            message: A ``UserAudio`` of PCM16 little-endian mono at 16 kHz, any length.
        """
        self._last_frame_s = message.at_s
        self._waiting += message.event.pcm
        while len(self._waiting) >= self._window_bytes:
            window = bytes(self._waiting[: self._window_bytes])
            del self._waiting[: self._window_bytes]
            self._hear_window(window, self._vad.probability(window))

    def _hear_window(self, window: bytes, probability: float) -> None:
        if not self._speaking:
            self._pre_roll.append(window)
            self._voiced = self._voiced + 1 if probability >= self._settings.speech_above else 0
            if self._voiced >= self._settings.onset_windows:
                self._begin()
            return
        self._part += window
        if probability >= self._settings.speech_above:
            self._go_on()
        elif probability < self._settings.silence_below or self._silent_s:
            self._fall_silent()
        if len(self._part) > LONGEST_PART_S * BYTES_PER_S:
            self._close_part()

    def _begin(self) -> None:
        self._speaking, self._paused = True, False
        self._silent_s = 0.0
        self._last_voice_s = trio.current_time()
        self._part = bytearray(b"".join(self._pre_roll))
        self._parts = []
        self._publish(UserStartedSpeaking())
        self._publish(SpeechBegan())

    def _go_on(self) -> None:
        self._silent_s = 0.0
        self._last_voice_s = trio.current_time()
        if self._paused:
            self._paused = False
            self._publish(SpeechResumed())

    def _fall_silent(self) -> None:
        self._silent_s += self._window_s
        if not self._paused and self._silent_s >= self._settings.pause_s:
            self._pause()

    def _pause(self) -> None:
        self._paused = True
        self._publish(SpeechPaused((*self._parts, bytes(self._part)), self._last_voice_s))

    def _close_part(self) -> None:
        self._parts.append(bytes(self._part))
        self._part.clear()

    async def _guard(self, _: Message) -> None:
        """End the turn of a microphone that falls silent in mid-word."""
        while self._speaking:
            lost_at_s = self._last_frame_s + MICROPHONE_LOST_S
            if trio.current_time() >= lost_at_s:
                log.info("microphone_lost", call_id=self._bridge.call.call_id)
                if not self._paused:
                    self._pause()
                lost_at_s = trio.current_time() + MICROPHONE_LOST_S  # it may come back, and go
            await trio.sleep_until(lost_at_s)

    # --- the end of a turn ----------------------------------------------------------------------

    async def _decide(self, message: Message) -> None:
        """Find out whether the turn is over, and what was said; cancelled if it goes on."""
        paused: SpeechPaused = message.event
        began_s = trio.current_time()
        heard = _Words()
        probability = 1.0
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._transcribe, paused.parts, heard)
                probability = await self._complete(paused.parts[-1])
                turn_s = trio.current_time() - began_s
        except Exception:
            # The caller is waiting: better an empty turn than none.
            self._conclude("")
            raise
        text = " ".join(part for part in heard.parts if part)
        if probability < self._settings.complete_above:
            if text:
                self._publish(UserTranscriptionReceived(content=text, final=False))
            await trio.sleep_until(paused.since_s + self._pause_for(probability))
        self._tell("listening.end_of_turn_s", turn_s)
        self._tell("listening.stt_s", heard.took_s)
        self._tell("listening.turn_complete", round(probability, 3), "")
        self._tell("listening.decided_s", trio.current_time() - paused.since_s)
        self._conclude(text)

    async def _complete(self, pcm: bytes) -> float:
        """Ask the model; one that fails must not cost the caller's words."""
        try:
            return await self._end_of_turn.probability(pcm)
        except Exception:
            log.exception("end_of_turn_failed", call_id=self._bridge.call.call_id)
            return 0.0

    def _pause_for(self, probability: float) -> float:
        """Return the silence in seconds that ends a turn which does not sound complete."""
        settings = self._settings
        more_to_come = 1 - probability / settings.complete_above
        return settings.pause_s + (settings.longest_pause_s - settings.pause_s) * more_to_come

    async def _transcribe(self, parts: tuple[bytes, ...], heard: _Words) -> None:
        began_s = trio.current_time()
        for part in parts:
            heard.parts.append((await self._stt.transcribe(part)).text.strip())
        heard.took_s = trio.current_time() - began_s

    def _conclude(self, text: str) -> None:
        self._speaking = self._paused = False
        self._voiced = 0
        self._pre_roll.clear()
        if text:
            self._publish(UserTranscriptionReceived(content=text))
        self._publish(UserStoppedSpeaking())

    def _tell(self, name: str, value: float, unit: str = "s") -> None:
        self._publish(LogMetric(name=name, value=round(value, 4), unit=unit))

    def _publish(self, event: object) -> None:
        # What the caller does is nobody's output: it must not become stale with a run of ours.
        self._bridge.call.router.publish_detached(event, self._bridge.name)


class SilenceOnly:
    """An `EndOfTurn` that takes every pause for the end."""

    async def probability(self, pcm: bytes) -> float:
        """Return 1.

        Args:
            pcm: Not looked at.
        """
        await trio.lowlevel.checkpoint()
        return 1.0
