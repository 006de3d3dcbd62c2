"""A speech stack with a streaming ear, for ``App(answer, speech=StreamingSpeech(ear, voice))``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bargein.bridge.validation.arguments import check_factory, check_has, check_instance
from bargein.nodes.user_turns import EarEndpointing, TurnSettings, TurnTaking

from ._ear import Ear
from ._filler_playback import NoticesOfSelfSpeakers
from ._late_answer_fillers import DEFAULT_FILLERS, Fillers, SpokenFillers
from ._listening_settings import ListeningSettings
from ._open_engines import open_engines
from ._protocols import EndOfTurn, TextToSpeech, VoiceActivity
from ._spoken_form import NewSpokenForm, spoken_form_for
from ._streaming_ear import StreamingEar
from ._streaming_protocols import StreamingSTT, StreamingTTS
from ._tts_node import TTSNode
from ._vad import SileroModel, detector_factory

if TYPE_CHECKING:
    from bargein.bridge import Call


class StreamingSpeech:
    """Hears with a streaming ear and speaks with a voice.

    Its ``TurnTaking`` sets who ends a turn: the ear (``EarEndpointing``, the default here),
    bargein's own rules (``ModelEndpointing``), or both (``EarliestEndpointing``,
    ``SurestEndpointing``).  With a `vad`, the agent's speech is held 64 ms after the caller begins;
    without one it waits for the ear, which takes several tenths of a second.
    """

    def __init__(
        self,
        ear: StreamingSTT | None = None,
        voice: TextToSpeech | StreamingTTS | None = None,
        *,
        vad: SileroModel | Callable[[], VoiceActivity] | None = None,
        end_of_turn: EndOfTurn | None = None,
        turns: TurnTaking | None = None,
        settings: ListeningSettings | None = None,
        fillers: Fillers | None = DEFAULT_FILLERS,
        spoken_form: NewSpokenForm | None = None,
    ) -> None:
        """Choose the engines; nothing is opened before ``open()``.

        Args:
            ear: Recognises words and detects turns; ``None`` if a ``RealtimeNode`` of the call
                does.
            voice: Speaks; ``None`` if something else does, or nothing.
            vad: The voice detector: a loaded ``SileroModel()``, or a class or function that makes
                one for each call; ``None`` relies on the ear.
            end_of_turn: An end-of-turn model to ask at each pause; it requires a `vad`.
            turns: Decides what interrupts and when a turn ends; None means
                ``TurnTaking(TurnSettings(endpointing=EarEndpointing()))``.
            settings: When a voice counts as begun or stopped, for the `vad`.
            fillers: What the caller hears while an answer is late; ``None`` for silence. Without a
                `voice`, only an agent that speaks itself has them, in prepared sounds.
            spoken_form: Makes what the voice says of each text; ``None`` means the voice's own, or
                ``PlainWords``.

        Raises:
            TypeError: `ear` is not an ear, `voice` not a voice, or another argument cannot do its
                work.
            ValueError: There is an `end_of_turn` without a `vad`.
        """
        check_has("StreamingSpeech(ear=)", ear, "open_stream", example="DeepgramFlux()")
        voices = ("synthesize", "open_context")
        check_has("StreamingSpeech(voice=)", voice, *voices, example="EspeakVoice()")
        check_factory("StreamingSpeech(spoken_form=)", spoken_form)
        predictor = "StreamingSpeech(end_of_turn=)"
        check_has(predictor, end_of_turn, "probability", example="SmartTurn()")
        check_instance("StreamingSpeech(turns=)", turns, TurnTaking)
        check_instance("StreamingSpeech(settings=)", settings, ListeningSettings)
        check_instance("StreamingSpeech(fillers=)", fillers, Fillers)
        if end_of_turn is not None and vad is None:
            raise ValueError("StreamingSpeech(end_of_turn=) is asked at pauses: it wants a vad=")
        self._ear = ear
        self._voice = voice
        self._new_vad = detector_factory("StreamingSpeech(vad=)", vad)
        self._end_of_turn = end_of_turn
        self._turns = turns or TurnTaking(TurnSettings(endpointing=EarEndpointing()))
        self._settings = settings or ListeningSettings()
        self._spoken_form = spoken_form_for(voice, spoken_form)
        says = voice, self._spoken_form
        self._fillers = None if fillers is None else SpokenFillers(fillers, *says)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Open the engines that can be opened before a call."""
        engines = self._ear, self._end_of_turn, self._voice
        async with open_engines(*engines, fillers=self._fillers):
            yield

    def attach(self, call: Call) -> None:
        """Hear and speak in a call.

        Args:
            call: A call with audio.
        """
        if self._new_vad is not None:
            ears = call.bridge(name="ears", is_agent=False)
            Ear(ears, self._new_vad(), None, self._end_of_turn, self._settings)
        if self._ear is not None:
            words = call.bridge(name="words", is_agent=False)
            StreamingEar(words, self._ear, hears_voice=self._new_vad is None)
        self._turns.attach(call)
        if self._voice is not None:
            bridge = call.bridge(name="voice", is_agent=False)
            TTSNode(bridge, self._voice, self._fillers, self._spoken_form)
        elif self._fillers is not None:
            bridge = call.bridge(name="notices", is_agent=False)
            NoticesOfSelfSpeakers(bridge, self._fillers)
