"""Piper: natural speech on two cores, in separate worker processes (GPL-3.0-or-later)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from bargein.bridge.validation.arguments import check_instance
from bargein.bridge.validation.numbers import check_count, check_range
from bargein.nodes.weights import WeightsInUse

from ._errors import SpeechEngineError, SpeechExtraError
from ._number_words import numbers_in_words
from ._spoken_form import NewSpokenForm
from ._worker_voice import EngineSettings, WorkerVoice

_ENGINE = Path(__file__).with_name("_child_piper.py")


class PiperVoice(WorkerVoice):
    """A ``TextToSpeech`` with a Piper voice; one piece per sentence, with word times."""

    def __init__(
        self,
        model: Path | str | None = None,
        *,
        workers: int = 1,
        threads: int = 2,
        length_scale: float | None = None,
        seed: int | None = None,
    ) -> None:
        """Configure the voice; nothing is loaded before ``open()``.

        Args:
            model: A Piper voice (.onnx, with its .onnx.json beside it); ``None`` means "piper-joe"
                from the model store.
            workers: Number of processes, about 300 MB each; so many texts are synthesised at once.
            threads: Threads per process.
            length_scale: 1 is the speed of the recordings, 1.2 a fifth slower, 0.1 to 10; ``None``
                keeps the voice's.
            seed: Seeds the noise that varies how a text sounds, from 0.  With a seed, the first
                text of a process always sounds the same, and so does each one after it, which suits
                tests.  The order begins anew in a process that replaces a stuck one, and with
                several `workers` it depends on which of them is free.  ``None`` draws a new seed
                for each process.

        Raises:
            TypeError: `model` is no path, or a number is none.
            ValueError: A number is out of bounds.
            SpeechExtraError: The package piper-tts is missing.
        """
        if find_spec("piper") is None:
            raise SpeechExtraError("PiperVoice", "piper-tts", "piper")
        check_count("PiperVoice(workers=)", workers)
        check_count("PiperVoice(threads=)", threads)
        check_range("PiperVoice(length_scale=)", length_scale, 0.1, 10, optional=True)
        check_count("PiperVoice(seed=)", seed, least=0, optional=True)
        self._model = Path(model) if isinstance(model, str) else model
        check_instance("PiperVoice(model=)", self._model, Path)
        self._threads = threads
        self._length_scale = length_scale
        self._seed = seed
        super().__init__("piper", _ENGINE, self._loaded, workers=workers)

    @property
    def spoken_form(self) -> NewSpokenForm:
        """`NumbersInWords` of the voice's language, known by its file's name; else `PlainWords`."""
        return numbers_in_words(self._model.name if self._model else "en")

    def _loaded(self) -> EngineSettings:
        """Find the weights, and return what the engine gets."""
        self._weights = WeightsInUse("piper-joe", self._model)
        model = self._weights.path
        for file in (model, Path(f"{model}.json")):
            if not file.is_file():
                raise SpeechEngineError(f"PiperVoice: there is no file {str(file)!r}")
        return {
            "model": str(model),
            "threads": self._threads,
            "length_scale": self._length_scale,
            "seed": self._seed,
        }
