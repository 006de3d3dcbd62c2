"""espeak-ng: a small, robotic voice that answers in milliseconds, in a worker (GPL-3)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from bargein.bridge.validation.arguments import check_instance
from bargein.bridge.validation.numbers import check_count, check_range

from ._errors import SpeechExtraError
from ._number_words import numbers_in_words
from ._spoken_form import NewSpokenForm
from ._worker_voice import EngineSettings, WorkerVoice

_ENGINE = Path(__file__).with_name("_child_espeak.py")


class EspeakVoice(WorkerVoice):
    """A ``TextToSpeech`` with espeak-ng; each text is one piece, with word times."""

    def __init__(
        self,
        voice: str = "en-us",
        *,
        words_per_minute: int = 160,
        pitch: int | None = None,
        pitch_range: int | None = None,
        word_gap: int | None = None,
        workers: int = 1,
    ) -> None:
        """Configure the voice; nothing is loaded before ``open()``.

        Args:
            voice: A voice of espeak-ng, optionally with ``+`` and a variant: "en-us", "en-us+f3".
            words_per_minute: Speed, 80 to 450.
            pitch: 0 to 100; ``None`` keeps the voice's (50).
            pitch_range: 0 (monotone) to 100; ``None`` keeps the voice's (50).
            word_gap: Extra pause between words, in units of 10 ms; ``None`` for none.
            workers: Processes, about 15 MB each; the number of texts synthesised at once.

        Raises:
            TypeError: `voice` is not a string, or a number is none.
            ValueError: A number is out of bounds.
            SpeechExtraError: The package espeakng-loader is missing.
        """
        if find_spec("espeakng_loader") is None:
            raise SpeechExtraError("EspeakVoice", "espeakng-loader", "espeak")
        check_instance("EspeakVoice(voice=)", voice, str, required=True)
        check_range("EspeakVoice(words_per_minute=)", words_per_minute, 80, 450, whole=True)
        check_range("EspeakVoice(pitch=)", pitch, 0, 100, whole=True, optional=True)
        check_range("EspeakVoice(pitch_range=)", pitch_range, 0, 100, whole=True, optional=True)
        check_count("EspeakVoice(word_gap=)", word_gap, least=0, optional=True)
        check_count("EspeakVoice(workers=)", workers)
        settings: EngineSettings = {
            "voice": voice,
            "words_per_minute": words_per_minute,
            "pitch": pitch,
            "pitch_range": pitch_range,
            "word_gap": word_gap,
        }
        super().__init__("espeak", _ENGINE, settings, workers=workers)
        self._voice = voice

    @property
    def spoken_form(self) -> NewSpokenForm:
        """`NumbersInWords` of the voice's language, or `PlainWords`."""
        return numbers_in_words(self._voice)
