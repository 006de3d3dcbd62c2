"""A speech stack without a network, for ``App(answer, speech=LocalSpeech())``."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import trio

from bargein.bridge.validation.arguments import check_factory, check_has, check_instance
from bargein.nodes.user_turns import TurnTaking
from bargein.nodes.weights import ProgressPrinter, fetch_models
from bargein.routes.error_hints import SuggestsNames

from ._backchannel import BackchannelDetector
from ._ear import Ear
from ._echo_detector import EchoDetector
from ._end_of_turn_model import SmartTurn
from ._errors import SpeechExtraError
from ._late_answer_fillers import DEFAULT_FILLERS, Fillers, SpokenFillers
from ._listening_settings import ListeningSettings
from ._open_engines import open_engines
from ._playback_reference import HeardAgent
from ._protocols import (
    EndOfTurn,
    NoiseFilter,
    SoundOfVoice,
    SpeechToText,
    TextToSpeech,
    VoiceActivity,
)
from ._spoken_form import NewSpokenForm, spoken_form_for
from ._streaming_protocols import StreamingTTS
from ._stt_whisper import WhisperTiny
from ._throat_sounds import ThroatSoundDetector
from ._tts_espeak import EspeakVoice
from ._tts_node import TTSNode
from ._tts_piper import PiperVoice
from ._vad import SileroModel, detector_factory

if TYPE_CHECKING:
    from bargein.bridge import Call


class LocalSpeech(SuggestsNames):
    """Hears with Silero VAD, Smart Turn and Whisper; speaks with piper or espeak-ng.

    A ``TurnTaking`` decides what becomes a turn. You can replace each part with your own that has
    the same protocol.  All calls of the process share one set of engines: models run in threads
    that release the GIL, the GPL-licensed voices in worker processes.
    """

    def __init__(
        self,
        *,
        voice: TextToSpeech | StreamingTTS | None = None,
        stt: SpeechToText | None = None,
        end_of_turn: EndOfTurn | None = None,
        vad: SileroModel | Callable[[], VoiceActivity] | None = None,
        sounds: Sequence[SoundOfVoice] | None = None,
        turns: TurnTaking | None = None,
        hint: str = "",
        settings: ListeningSettings | None = None,
        fetch: bool = True,
        fillers: Fillers | None = DEFAULT_FILLERS,
        noise_filter: Callable[[], NoiseFilter] | None = None,
        spoken_form: NewSpokenForm | None = None,
    ) -> None:
        """Choose the engines; nothing is loaded before ``open()``.

        Args:
            voice: Speaks; ``None`` means piper if its extra is installed, else espeak-ng.
            stt: Recognises speech; ``None`` means Whisper tiny.en.
            end_of_turn: Predicts from the audio whether a turn is complete; ``None`` means Smart
                Turn.
            vad: The voice detector: a loaded ``SileroModel()``, or a class or function that makes
                one for each call; ``None`` means Silero VAD.
            sounds: Classifiers for the sound of a voice that has just begun; ``None`` means those
                for backchannels such as "mhm" and for coughs, sneezes and laughs, an empty sequence
                means none.
            turns: Decides what interrupts and when a turn ends; ``None`` means ``TurnTaking()``.
            hint: Words that callers are likely to use, in a sentence: "A large latte, a cappuccino,
                a muffin."  Only for the default Whisper.
            settings: When a voice counts as begun or stopped.
            fetch: Whether ``open()`` downloads missing models; with false, a missing model is an
                error.
            fillers: What the caller hears while an answer is late; ``None`` for silence.
            noise_filter: Makes the filter that cleans each call's microphone; ``None`` for none.
            spoken_form: Makes what the voice says of each text; ``None`` means the voice's own, or
                ``PlainWords``.

        Raises:
            SpeechExtraError: A package that a default engine needs is not installed.
            TypeError: `vad`, `noise_filter` or `spoken_form` is the detector, filter or form of one
                call, not what makes it; or another argument cannot do its work.
        """
        check_instance("LocalSpeech(hint=)", hint, str, required=True)
        check_factory("LocalSpeech(noise_filter=)", noise_filter)
        check_factory("LocalSpeech(spoken_form=)", spoken_form)
        voices = ("synthesize", "open_context")
        check_has("LocalSpeech(voice=)", voice, *voices, example="EspeakVoice()")
        check_has("LocalSpeech(stt=)", stt, "transcribe", example="WhisperTiny()")
        check_has("LocalSpeech(end_of_turn=)", end_of_turn, "probability", example="SmartTurn()")
        check_instance("LocalSpeech(turns=)", turns, TurnTaking)
        check_instance("LocalSpeech(settings=)", settings, ListeningSettings)
        check_instance("LocalSpeech(fillers=)", fillers, Fillers)
        for sound in sounds or ():
            example = "BackchannelDetector('early')"
            check_has("LocalSpeech(sounds=)", sound, "probability", example=example)
        self._needed: list[str] = []
        self._voice: TextToSpeech | StreamingTTS = voice or self._default_voice()
        self._stt = stt or self._need("whisper-tiny.en", WhisperTiny(hint=hint))
        self._end_of_turn = end_of_turn or self._need("smart-turn", SmartTurn())
        if vad is None:
            self._needed.append("silero-vad")
        self._new_vad = detector_factory("LocalSpeech(vad=)", vad)
        # The throat detector comes before the late backchannel detector, so that a cough is not
        # taken for speech.
        ours = (ThroatSoundDetector(), BackchannelDetector("early"), BackchannelDetector("late"))
        self._sounds = ours if sounds is None else tuple(sounds)
        self._turns = turns or TurnTaking()
        self._settings = settings or ListeningSettings()
        self._spoken_form = spoken_form_for(self._voice, spoken_form)
        says = self._voice, self._spoken_form
        self._fillers = None if fillers is None else SpokenFillers(fillers, *says)
        self._new_filter = noise_filter
        self._fetch = fetch

    def _need(self, model: str, engine: Any) -> Any:
        self._needed.append(model)
        return engine

    def _default_voice(self) -> TextToSpeech:
        if find_spec("piper") is not None:
            voice: TextToSpeech = self._need("piper-joe", PiperVoice())
            return voice
        if find_spec("espeakng_loader") is not None:
            return EspeakVoice()
        raise SpeechExtraError("LocalSpeech", "piper-tts", "local,piper")

    @property
    def stt(self) -> SpeechToText:
        """The recogniser; usable elsewhere while the stack is open."""
        return self._stt

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Load and warm the engines; download missing models first.

        Raises:
            WeightsError: A model could not be downloaded, or is missing with ``fetch=False``.
        """
        if self._fetch and self._needed:
            await fetch_models(self._needed, ProgressPrinter(sys.stderr))
        if self._new_vad is None:
            self._new_vad = (await trio.to_thread.run_sync(SileroModel)).new_call
        engines = self._stt, self._end_of_turn, self._voice
        async with open_engines(*engines, fillers=self._fillers):
            yield

    def attach(self, call: Call) -> None:
        """Hear and speak in a call.

        Args:
            call: A call with audio.

        Raises:
            RuntimeError: The engines are not open.
        """
        if self._new_vad is None:
            raise RuntimeError("LocalSpeech is not open; use it inside: async with app.open():")
        ears = call.bridge(name="ears", is_agent=False)
        Ear(
            ears,
            self._new_vad(),
            self._stt,
            self._end_of_turn,
            self._settings,
            sounds=self._sounds,
            echo=EchoDetector(HeardAgent(ears)),
            noise_filter=self._new_filter() if self._new_filter is not None else None,
        )
        self._turns.attach(call)
        voice = call.bridge(name="voice", is_agent=False)
        TTSNode(voice, self._voice, self._fillers, self._spoken_form)
