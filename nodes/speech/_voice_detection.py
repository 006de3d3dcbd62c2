"""Detects the voice of one caller: windows of audio in, when it begins and stops out.

Rules:
1. A voice begins with two voiced windows in a row (64 ms): soon enough to hold the agent's speech,
   and too long for a click. It stops with two silent ones.
2. Shortly after, its sound is classified (`ClassifierSchedule`): a backchannel, a burst of noise,
   or speech.
3. `CallerVoice` judges whether a window is the caller's voice: echo, babble and somebody further
   away are not. A voice that may be babble all the same gets the hint `distant`, and no other.
4. Each start is followed by exactly one stop, even if the microphone falls silent in mid-word.
   Failing detectors stop a voice like a lost microphone.

Turn taking, not this module, decides whether a voice is a turn, and when the turn ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from bargein.bridge.events import (
    ListeningFailed,
    ListeningResumed,
    LogMetric,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    VoiceHint,
    VoiceSettled,
    VoiceStarted,
    VoiceStopped,
)
from bargein.bridge.validation.numbers import check_count
from bargein.routes.error_containment import as_error
from bargein.routes.logs import get_logger

from ._caller_voice import CallerVoice
from ._classifier_schedule import ClassifierSchedule
from ._errors import are_probabilities, no_probability
from ._line_silence import LEFT_OUT_S, RATE_HZ, LineSilence
from ._listening_settings import ListeningSettings
from ._protocols import EchoProbability, EndOfTurn, Recogniser, SoundOfVoice, VoiceActivity
from ._recogniser_ear import RecogniserEar

if TYPE_CHECKING:
    from bargein.bridge import Bridge, Message

log = get_logger()

DISTANT = 0.9
"""The probability that a voice that may be babble is: until somebody is louder, it is."""

HEARS_S = 1.0
"""How long failed detectors must work again, in seconds, before the ear counts as hearing."""

SHOWN_S = 0.48
"""How much audio the classifiers get, in seconds."""


@dataclass(frozen=True, slots=True)
class SpeechBegan:
    """A voice began, and a guard has to make sure that it stops."""


class VoiceDetection:
    """Detects when a caller's voice begins and stops, and has a recogniser hear it."""

    def __init__(
        self,
        bridge: Bridge,
        vad: VoiceActivity,
        recogniser: Recogniser | None,
        end_of_turn: EndOfTurn | None,
        settings: ListeningSettings,
        *,
        sounds: Sequence[SoundOfVoice],
        echo: EchoProbability | None,
    ) -> None:
        """Declare the routes; the arguments are those of `Listener`."""
        check_count(f"{type(vad).__name__}.frame_samples", vad.frame_samples)
        self._bridge = bridge
        # The caller's actions are not the output of a run, so no interruption may drop them.
        self._publish = bridge.publish_detached
        self._vad = vad
        self._settings = settings
        self._echo = echo
        self._window_bytes = 2 * vad.frame_samples
        self._voice = CallerVoice(settings, vad.frame_samples / RATE_HZ)
        self._waiting = bytearray()
        self._shown: deque[bytes] = deque(maxlen=self._voice.windows(SHOWN_S))
        recent = lambda: b"".join(self._shown)  # noqa: E731
        self._classifiers = ClassifierSchedule(
            sounds, self._voice.window_s, recent, bridge.report_error
        )
        self._ear = RecogniserEar(bridge, recogniser, end_of_turn, settings, self._voice)
        self._is_distant = False  # published so of this voice
        self._last_voice_s, self._last_frame_s = 0.0, trio.current_time()
        self._line = LineSilence()
        self._failed_since_s: float | None = None  # when the detectors started failing
        self._failed_s = 0.0  # when they failed last
        bridge.on(UserStartedSpeaking).map(self._note_turn)
        bridge.on(SpeechBegan, overlap="restart").map(self._guard)
        bridge.on(VoiceSettled).map(self._settle)
        bridge.on(UserStoppedSpeaking).map(self._measure_decision)

    def hear(self, pcm: bytes, at_s: float) -> None:
        """Process audio, and publish what it changes in the same step.

        Args:
            pcm: Whole samples, PCM16.
            at_s: When they came.
        """
        try:
            self._waiting += pcm
            is_late = at_s >= self._last_frame_s + LEFT_OUT_S
            if is_late and self._failed_since_s is None:  # if the detectors failed, it was sent
                self._voice.nothing_was_sent()
            while len(self._waiting) >= self._window_bytes:
                window = bytes(self._waiting[: self._window_bytes])
                del self._waiting[: self._window_bytes]
                self._hear_window(window)
        except BaseException as caught:  # noqa: ASYNC103, BLE001 - see as_error()
            error = as_error(caught)
            self._fail(error)
            raise error from error.__cause__  # noqa: ASYNC104 - see as_error()
        # Frames on which the detectors failed do not count, so failing detectors stop a voice like
        # a lost microphone.
        self._last_frame_s = at_s
        self._line.add_frame(len(pcm) / 2 / RATE_HZ, at_s)
        if self._failed_since_s is not None:
            self._resume(self._failed_since_s)

    def _fail(self, error: Exception) -> None:
        """Publish once that nothing is heard; drop the waiting audio, so that it cannot pile up."""
        self._waiting.clear()
        self._failed_s = trio.current_time()
        if self._failed_since_s is None:
            self._failed_since_s = self._failed_s
            self._publish(ListeningFailed(error=type(error).__name__))

    def _resume(self, since_s: float) -> None:
        """Publish that the caller is heard again, unless the detectors still fail at times."""
        now_s = trio.current_time()
        if now_s >= self._failed_s + HEARS_S:
            self._failed_since_s = None
            self._publish(ListeningResumed(failed_s=round(now_s - since_s, 3)))

    def _hear_window(self, window: bytes) -> None:
        probability = self._vad.probability(window)
        echo = self._echo.probability(window) if self._echo is not None else 0.0
        if not are_probabilities(probability, echo):
            raise no_probability((self._vad, probability), (self._echo, echo))
        voice = self._voice
        self._shown.append(window)
        self._ear.hear(window)
        judged = voice.judge(window, probability, echo)
        hints = self._classifiers.hear(
            judged.is_voice,
            self._settings.onset_windows,
            in_voice=voice.is_on or voice.voiced > 0,
            soft=judged.is_soft,
            sudden=judged.is_sudden,
            echo=judged.is_echo,
        )
        if voice.is_on or hints:
            self._publish_hints(hints)
        if judged.is_echo:
            self._hear_echo(echo, judged.is_voice)
        elif judged.is_voice:
            voice.hear_voice(judged.peak)
            self._hear_voice(is_fading=judged.is_fading)
        elif judged.probability < self._settings.silence_below or voice.silent or not voice.is_on:
            self._hear_silence()

    def _hear_voice(self, *, is_fading: bool) -> None:
        if self._voice.is_on:
            self._last_voice_s = trio.current_time()
            self._ear.voice_goes_on(is_fading=is_fading)
        elif self._voice.voiced >= self._settings.onset_windows:
            self._start()

    def _start(self) -> None:
        self._voice.start()
        self._last_voice_s = trio.current_time()
        self._ear.voice_began()
        self._is_distant = self._voice.may_be_babble
        self._publish(VoiceStarted(distant=DISTANT if self._is_distant else 0.0))
        self._publish(SpeechBegan())
        self._publish_hints(self._classifiers.voice_began(self._settings.onset_windows))

    def _publish_hints(self, hints: Sequence[VoiceHint]) -> None:
        """Publish what a voice sounds like; of babble only that it is nearer after all.

        Voices behind a beginning make it a hum: 3 of 40 callers in babble seemed to hum.
        """
        is_distant = self._voice.may_be_babble
        if self._voice.is_on and is_distant != self._is_distant:
            self._is_distant = is_distant
            self._publish(VoiceHint(kind="distant", probability=DISTANT if is_distant else 0.0))
        for hint in () if self._is_distant else hints:
            if hint.kind != "acknowledgement" or not self._voice.is_in_babble:
                self._publish(hint)

    def _hear_silence(self) -> None:
        voice, stop = self._voice, self._settings.stop_windows
        voice.hear_silence()
        if voice.is_on and voice.silent >= stop - 1:
            self._ear.voice_may_stop()
        if voice.is_on and voice.silent >= stop:
            self._stop()
        self._ear.silence_lasts()

    def _hear_echo(self, probability: float, speechlike: bool) -> None:
        # A silence behind the caller's voice is no echo of anything.
        voice = self._voice
        if speechlike and voice.is_on and not voice.silent and not self._is_distant:
            self._publish(VoiceHint(kind="echo", probability=round(probability, 3)))
        self._hear_silence()

    def _stop(self) -> None:
        self._publish(VoiceStopped(voiced_s=round(self._voice.stop(), 3)))
        self._ear.voice_stopped()

    async def _guard(self, _: Message) -> None:
        """Stop the voice if the microphone falls silent in mid-word."""
        while self._ear.is_recording:
            lost_at_s = min(self._line.missing_at_s, self._last_frame_s + LEFT_OUT_S)
            if trio.current_time() < lost_at_s:
                await trio.sleep_until(lost_at_s)
                continue
            log.info("microphone_lost", call_id=self._bridge.call_id)
            if self._voice.is_on:
                self._stop()
            self._ear.pause()

    # --- the turn -------------------------------------------------------------------------------

    def _note_turn(self, _: Message) -> None:
        self._voice.turn_began()

    def _settle(self, _: Message) -> None:
        self._voice.turn_settled()

    def _measure_decision(self, _: Message) -> None:
        self._voice.turn_ended()
        if self._last_voice_s:
            decided_s = round(trio.current_time() - self._last_voice_s, 4)
            self._publish(LogMetric(name="listening.decided_s", value=decided_s, unit="s"))
