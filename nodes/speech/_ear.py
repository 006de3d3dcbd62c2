"""The ear of one call: audio frames in, facts about the caller's voice out.

Rules:
1. A voice begins with two voiced windows in a row (64 ms): soon enough to hold the agent's speech,
   and too long for a click. It stops with two silent ones.
2. Shortly after, its sound is classified (`ClassifierSchedule`): a backchannel, a burst of noise,
   or speech.
3. A voice over the agent goes to the recogniser repeatedly before it is over: a laugh becomes "ha
   ha", a sentence its first words. When the voice stops, perhaps for a gap, the words show whether
   more is to come; the recogniser starts where a short voice fades, or one window before the stop,
   and its work is discarded if the voice goes on.
4. The first longer silence starts the recogniser and the end-of-turn model together, on all audio
   that is not settled; if the caller goes on, their work is discarded. `VoiceSettled` settles the
   audio, but only after its words were published, so a slow recogniser loses no word.
5. `CallerVoice` judges whether a window is the caller's voice: echo, babble and somebody further
   away are not. A voice that may be babble all the same gets the hint `distant`, and no other.
6. Each start is followed by exactly one stop, and by words or the reason why there are none, even
   if the microphone falls silent in mid-word or the recogniser fails or hangs.

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
    TurnScored,
    UserAudio,
    UserStartedSpeaking,
    UserStoppedSpeaking,
    VoiceHint,
    VoiceSettled,
    VoiceStarted,
    VoiceStopped,
    VoiceWords,
)
from bargein.bridge.validation.numbers import check_count
from bargein.routes.error_containment import CONTAINED, as_error
from bargein.routes.logs import get_logger

from ._caller_voice import CallerVoice
from ._classifier_schedule import ClassifierSchedule
from ._early_recognition import VoiceRecording, words_of
from ._engine_results import transcript_by
from ._errors import are_probabilities, no_probability
from ._line_silence import LEFT_OUT_S, LineSilence
from ._listening_settings import ListeningSettings
from ._noise_filter import CallerMicrophone, microphone_of
from ._protocols import (
    EchoProbability,
    EndOfTurn,
    NoiseFilter,
    SoundOfVoice,
    SpeechToText,
    VoiceActivity,
)

if TYPE_CHECKING:
    from bargein.bridge import Bridge, Message

log = get_logger()

SAMPLE_RATE_HZ = 16_000

RECOGNISER_LOST_S = 30.0
"""How long the recogniser may take in all, in seconds. Turn taking waits for a shorter time, and
later words are still a turn; but the recording behind them must not grow without end."""

DISTANT = 0.9
"""The probability that a voice that may be babble is: until somebody is louder, it is."""

HEARS_S = 1.0
"""How long failed detectors must work again, in seconds, before the ear counts as hearing."""

SHOWN_S = 0.48
"""How much audio the classifiers get, in seconds."""


@dataclass(frozen=True, slots=True)
class SpeechLasts:
    """The caller has talked over the agent for a while."""

    parts: tuple[bytes, ...]
    stopped: bool = False
    """Whether the caller seems to have stopped, perhaps for a gap."""


@dataclass(frozen=True, slots=True)
class SpeechPaused:
    """The caller fell silent; the turn may be over."""

    parts: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class SpeechResumed:
    """The caller went on."""


@dataclass(frozen=True, slots=True)
class SpeechBegan:
    """A voice began, and a guard has to make sure that it stops."""


class Ear:
    """Detects when a caller's voice begins and stops, and what it says.

    ``LocalSpeech`` makes one per call.  Use it in a speech stack of your own, for example one that
    only hears.
    """

    def __init__(
        self,
        bridge: Bridge,
        vad: VoiceActivity,
        stt: SpeechToText | None,
        end_of_turn: EndOfTurn | None,
        settings: ListeningSettings,
        *,
        sounds: Sequence[SoundOfVoice] = (),
        echo: EchoProbability | None = None,
        noise_filter: NoiseFilter | CallerMicrophone | None = None,
    ) -> None:
        """Declare the ear's routes.

        Args:
            bridge: A bridge for the ear, not an agent's.
            vad: The voice detector of this call.
            stt: The recogniser, shared by all calls; ``None`` if the words come from elsewhere.
            end_of_turn: The end-of-turn model, shared by all calls; ``None`` for none.
            settings: When a voice counts as begun or stopped.
            sounds: Classifiers of a voice by its sound, shared by all calls.
            echo: The detector of the agent's echo in this call; ``None`` for none.
            noise_filter: Cleans the audio of this call first, or the microphone that others hear,
                too; ``None`` leaves it as it is.

        Raises:
            TypeError: The detector's ``frame_samples`` is not a whole number.
            ValueError: It is below 1.
        """
        check_count(f"{type(vad).__name__}.frame_samples", vad.frame_samples)
        self._bridge = bridge
        self._vad = vad
        self._stt = stt
        self._end_of_turn = end_of_turn
        self._settings = settings
        self._echo = echo
        self._microphone = microphone_of(noise_filter)
        self._window_bytes = 2 * vad.frame_samples
        self._window_s = vad.frame_samples / SAMPLE_RATE_HZ
        self._voice = CallerVoice(settings, self._window_s)
        self._waiting = bytearray()
        self._recent: deque[bytes] = deque(maxlen=self._windows(settings.pre_roll_s))
        self._shown: deque[bytes] = deque(maxlen=self._windows(SHOWN_S))
        recent = lambda: b"".join(self._shown)  # noqa: E731
        self._classifiers = ClassifierSchedule(sounds, self._window_s, recent, bridge.report_error)
        self._recording: VoiceRecording | None = None
        self._on = False  # between VoiceStarted and VoiceStopped
        self._over_agent = False  # the voice began over the agent and has not interrupted yet
        self._paused = False  # the models were asked, and the caller has not gone on since
        self._owes_words = self._settles = False  # words are pending; and they settle all
        self._is_distant = False  # published so of this voice
        self._voiced_windows = self._silent_windows = 0  # windows in a row
        self._last_voice_s, self._last_frame_s = 0.0, trio.current_time()
        self._line = LineSilence()
        self._failed_since_s: float | None = None  # when the detectors started failing
        self._failed_s = 0.0  # when they failed last
        bridge.on(UserAudio, source="caller").map(self.hear)
        looks = bridge.on(SpeechLasts, overlap="restart")
        looks.interrupt_on([SpeechPaused, SpeechResumed]).map(self._hear_early)
        bridge.on(UserStartedSpeaking).map(self._note_turn)
        bridge.on(SpeechPaused, overlap="restart").interrupt_on(SpeechResumed).map(self._understand)
        bridge.on(SpeechBegan, overlap="restart").map(self._guard)
        bridge.on(VoiceSettled).map(self._settle)
        bridge.on(UserStoppedSpeaking).map(self._measure_decision)

    def _windows(self, seconds: float) -> int:
        return max(1, round(seconds / self._window_s))

    def hear(self, message: Message) -> None:
        """Process audio, and publish what it changes in the same step.

        Args:
            message: A ``UserAudio`` of PCM16 little-endian mono at 16 kHz, any length: half a
                sample at its end belongs to the next one.
        """
        try:
            pcm = message.event.pcm
            if self._microphone is not None:  # windows are cut between samples anyway
                pcm = self._microphone.hear(message, self._bridge)
            self._waiting += pcm
            is_late = message.at_s >= self._last_frame_s + LEFT_OUT_S
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
        self._last_frame_s = message.at_s
        self._line.add_frame(len(pcm) / 2 / SAMPLE_RATE_HZ, message.at_s)
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
        self._recent.append(window)
        self._shown.append(window)
        if self._recording is not None:
            self._recording.add(window)
        judged = self._voice.judge(
            window, probability, echo, in_voice=self._on, silent_windows=self._silent_windows
        )
        hints = self._classifiers.hear(
            judged.is_voice,
            self._settings.onset_windows,
            in_voice=self._on or self._voiced_windows > 0,
            soft=judged.is_soft,
            sudden=judged.is_sudden,
            echo=judged.is_echo,
        )
        if self._on or hints:
            self._publish_hints(hints)
        if judged.is_echo:
            self._hear_echo(echo, judged.is_voice)
        elif judged.is_voice:
            self._voice.level.hear_voice(judged.peak)
            self._hear_voice(is_fading=judged.is_fading)
        elif (
            judged.probability < self._settings.silence_below
            or self._silent_windows
            or not self._on
        ):
            self._hear_silence()

    # --- start and stop of a voice --------------------------------------------------------------

    def _hear_voice(self, *, is_fading: bool) -> None:
        self._voiced_windows += 1
        if self._on:
            if is_fading:
                self._ask_in_gap(fading=True)
            elif self._recording is not None and self._recording.gap_closes():
                self._publish(SpeechResumed())
            self._silent_windows = 0
            self._last_voice_s = trio.current_time()
            self._ask_early()
        elif self._voiced_windows >= self._settings.onset_windows:
            self._start_voice()

    def _start_voice(self) -> None:
        self._on, self._silent_windows = True, 0
        self._voice.started()
        self._last_voice_s = trio.current_time()
        if self._recording is None:
            before = bytearray(b"".join(self._recent))
            self._recording = VoiceRecording(before, self._window_s, self._voiced_windows)
            self._over_agent = self._stt is not None and self._bridge.agent_status.is_audible
        if self._paused:
            self._paused = self._owes_words = self._settles = False
            self._publish(SpeechResumed())
        self._is_distant = self._voice.may_be_babble
        self._publish(VoiceStarted(distant=DISTANT if self._is_distant else 0.0))
        self._publish(SpeechBegan())
        self._publish_hints(self._classifiers.voice_began(self._settings.onset_windows))

    def _publish_hints(self, hints: Sequence[VoiceHint]) -> None:
        """Publish what a voice sounds like; of babble only that it is nearer after all.

        Voices behind a beginning make it a hum: 3 of 40 callers in babble seemed to hum.
        """
        is_distant = self._voice.may_be_babble
        if self._on and is_distant != self._is_distant:
            self._is_distant = is_distant
            self._publish(VoiceHint(kind="distant", probability=DISTANT if is_distant else 0.0))
        for hint in () if self._is_distant else hints:
            if hint.kind != "acknowledgement" or not self._voice.is_in_babble:
                self._publish(hint)

    def _ask_early(self) -> None:
        """Have the recogniser hear a voice over the agent before it is over."""
        heard = self._recording
        assert heard is not None
        if self._over_agent and heard.is_due(voiced=self._voiced_windows):
            self._publish(SpeechLasts(heard.all_parts()))

    def _note_turn(self, _: Message) -> None:
        self._voice.turn_began()
        self._over_agent = False

    def _hear_silence(self) -> None:
        if not self._on:
            self._voiced_windows = 0
        self._silent_windows += 1
        if self._on and self._silent_windows >= self._settings.stop_windows - 1:
            self._ask_in_gap()
        if self._on and self._silent_windows >= self._settings.stop_windows:
            self._stop()
        silent_s = self._silent_windows * self._window_s
        if self._recording is not None and not self._paused and silent_s >= self._settings.pause_s:
            self._pause()

    def _hear_echo(self, probability: float, speechlike: bool) -> None:
        # A silence behind the caller's voice is no echo of anything.
        if speechlike and self._on and not self._silent_windows and not self._is_distant:
            self._publish(VoiceHint(kind="echo", probability=round(probability, 3)))
        self._hear_silence()

    def _stop(self) -> None:
        self._on = False
        voiced_s, self._voiced_windows = self._voiced_windows * self._window_s, 0
        self._publish(VoiceStopped(voiced_s=round(voiced_s, 3)))
        words = self._recording.gap_lasts() if self._recording is not None else None
        if words is not None:
            self._publish(words)

    def _ask_in_gap(self, *, fading: bool = False) -> None:
        """Have the recogniser hear a voice over the agent that seems to stop.

        Args:
            fading: Whether it is only much weaker than before.
        """
        heard = self._recording
        if not self._over_agent or heard is None:
            return
        if heard.is_due_at_fading(self._voiced_windows) if fading else heard.is_due_in_gap():
            self._publish(SpeechLasts(heard.all_parts(), stopped=True))

    def _pause(self) -> None:
        assert self._recording is not None
        self._paused, self._owes_words = True, self._stt is not None
        self._publish(SpeechPaused(self._recording.all_parts()))

    def _settle(self, _: Message) -> None:
        """Drop the audio so far; the rest of a continuing sound belongs to the next words."""
        self._voice.turn_settled()
        self._settles = self._owes_words
        if not self._settles:
            self._drop()

    def _drop(self) -> None:
        self._paused = self._settles = False
        if self._on:
            self._recording = VoiceRecording(bytearray(), self._window_s)
            return
        self._recording = None
        while len(self._recent) > self._silent_windows + self._voiced_windows:
            self._recent.popleft()

    async def _guard(self, _: Message) -> None:
        """Stop the voice if the microphone falls silent in mid-word."""
        while self._recording is not None and not self._paused:
            lost_at_s = min(self._line.missing_at_s, self._last_frame_s + LEFT_OUT_S)
            if trio.current_time() < lost_at_s:
                await trio.sleep_until(lost_at_s)
                continue
            log.info("microphone_lost", call_id=self._bridge.call_id)
            if self._on:
                self._stop()
            if self._recording is not None:
                self._pause()

    # --- words ----------------------------------------------------------------------------------

    async def _understand(self, message: Message) -> None:
        """Publish the words and how complete the turn sounds; cancelled if the caller goes on."""
        parts = message.event.parts
        async with trio.open_nursery() as nursery:
            if self._end_of_turn is not None:
                nursery.start_soon(self._score, self._end_of_turn, parts[-1])
            if self._stt is not None:
                nursery.start_soon(self._transcribe, self._stt, parts)

    async def _hear_early(self, message: Message) -> None:
        """Publish the words so far; a failure is reported with the final ones."""
        if self._stt is None:
            return
        try:
            with CONTAINED:
                heard = await transcript_by(self._stt, message.event.parts[-1])
        except Exception:  # the same audio is transcribed again when the voice is over
            log.info("early_look_failed", call_id=self._bridge.call_id, exc_info=True)
            return
        stopped = message.event.stopped
        if not (stopped or heard.text.strip()):
            return
        words = words_of([heard]).model_copy(update={"final": False, "tentative": stopped})
        waits = stopped and self._recording is not None and self._recording.keep_for_gap(words)
        if not waits:
            self._publish(words)

    async def _score(self, end_of_turn: EndOfTurn, pcm: bytes) -> None:
        """Ask the end-of-turn model; its failure must not cost the caller's words."""
        began_s = trio.current_time()
        try:
            with CONTAINED:
                complete = await end_of_turn.probability(pcm)
        except Exception as error:
            self._bridge.report_error(error)
            log.exception("end_of_turn_failed", call_id=self._bridge.call_id)
            complete = 0.0
        self._measure("listening.end_of_turn_s", trio.current_time() - began_s)
        self._measure("listening.turn_complete", complete, "")
        self._publish(TurnScored(complete=complete))

    async def _transcribe(self, stt: SpeechToText, parts: tuple[bytes, ...]) -> None:
        began_s, is_masked = trio.current_time(), self._voice.is_masked
        try:
            with trio.fail_after(RECOGNISER_LOST_S), CONTAINED:
                heard = [await transcript_by(stt, part) for part in parts]
            words = words_of([part for part in heard if part.text.strip()])
            if is_masked:  # there, a recogniser is unsure of the ending of whole sentences, too
                words = words.model_copy(update={"ending_confidence": None})
        except Exception as error:
            # The caller is waiting, so the failure has to be published.
            self._publish_words(VoiceWords(content="", error=type(error).__name__))
            raise
        self._measure("listening.stt_s", trio.current_time() - began_s)
        self._publish_words(words)

    def _publish_words(self, words: VoiceWords) -> None:
        self._owes_words = False
        self._publish(words)
        if self._settles:
            self._drop()

    def _measure_decision(self, _: Message) -> None:
        self._voice.turn_ended()
        if self._last_voice_s:
            self._measure("listening.decided_s", trio.current_time() - self._last_voice_s)

    def _measure(self, name: str, value: float, unit: str = "s") -> None:
        self._publish(LogMetric(name=name, value=round(value, 4), unit=unit))

    def _publish(self, event: object) -> None:
        # The caller's actions are not the output of a run, so no interruption may drop them.
        self._bridge.publish_detached(event)
