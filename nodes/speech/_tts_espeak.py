"""espeak-ng: a small, robotic voice that answers in milliseconds, in a worker (GPL-3)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Self

from ._errors import SpeechExtraError, SpeechNotOpenError
from ._protocols import SpeechPiece
from ._worker import WorkerPool, WorkerSettings

_ENGINE = Path(__file__).with_name("_child_espeak.py")


class EspeakVoice:
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
            SpeechExtraError: The package espeakng-loader is missing.
        """
        if find_spec("espeakng_loader") is None:
            raise SpeechExtraError("EspeakVoice", "espeakng-loader", "espeak")
        self._settings = WorkerSettings(
            name="espeak",
            engine=_ENGINE,
            settings={
                "voice": voice,
                "words_per_minute": words_per_minute,
                "pitch": pitch,
                "pitch_range": pitch_range,
                "word_gap": word_gap,
            },
            size=workers,
        )
        self._pool: WorkerPool | None = None

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of the pieces: 22050.

        Raises:
            SpeechNotOpenError: Outside of `open`.
        """
        return self._need_pool().sample_rate_hz

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Start the workers and load the voice; leaving the block ends them.

        Raises:
            SpeechEngineError: There is no such voice.
            SpeechWorkerError: A worker did not start.
        """
        pool = WorkerPool(self._settings)
        async with pool.open():
            self._pool = pool
            try:
                yield self
            finally:
                self._pool = None

    def synthesize(self, text: str) -> AsyncGenerator[SpeechPiece, None]:
        """Yield the text as one piece, with word times.

        Args:
            text: The text; a sentence takes 5 to 10 ms.

        Raises:
            SpeechNotOpenError: Outside of `open`.
            SpeechEngineError: The engine refuses this text.
            SpeechWorkerError: The worker died; the next text gets a new one.
        """
        return self._need_pool().synthesize(text)

    def _need_pool(self) -> WorkerPool:
        if self._pool is None:
            raise SpeechNotOpenError("EspeakVoice")
        return self._pool
