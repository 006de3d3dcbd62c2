"""Speech engines in worker processes: a bounded pool that all calls share."""

from __future__ import annotations

import json
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bargein.bridge.events import WordTiming
from bargein.nodes.processes import ChildError, EngineLoadError, JobError, Pool, PoolSettings
from bargein.nodes.weights import WeightsInUse

from ._errors import SpeechEngineError, SpeechNotOpenError, SpeechWorkerError
from ._protocols import SpeechPiece

_CHILD = Path(__file__).with_name("_child_voice.py")
_LATE_S = 0.7
"""When a worker counts as late, in seconds, so that a second caller hears something within 2 s:
Piper takes 1 s to load and 0.2 s for a clause (two idle cores)."""
_CHARACTER_S = 0.035
"""English is spoken at 14 to 15 characters a second; an engine that is not twice as fast is too
slow. (Piper took 0.018 s per character on two cores with a load of 17.)"""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How to run the workers of one engine."""

    name: str
    """The engine's name in logs and errors."""
    engine: Path
    """Python file whose ``load(settings)`` returns the engine; runs in the worker only."""
    settings: Mapping[str, str | int | float | None]
    """Passed to ``load``, as JSON."""
    size: int = 1
    """Number of processes; so many texts are synthesised at once, and further ones wait. A slow
    text lets another process start, so there may be twice as many for a while."""
    start_s: float = 60.0
    """How long a worker may take to load, in seconds, before it is killed."""
    cancel_s: float = 3.0
    """How long a worker may take to end a cancelled text, in seconds, before it is killed."""
    silence_s: float = 2.0
    """How long a worker may yield no piece, in seconds, in addition to half the time that it takes
    to speak the text; then it is killed and replaced, and another one says the rest of the text."""
    weights: WeightsInUse | None = None
    """The weights that the engine loads; ``None`` for none of the model store."""


class WorkerPool:
    """The worker processes of one engine; open it, then call ``synthesize()``."""

    def __init__(self, settings: WorkerSettings) -> None:
        """Configure the pool; ``open()`` starts the processes."""
        self._settings = settings
        self._pool = Pool(
            PoolSettings(
                name=settings.name,
                engine=_CHILD,
                settings={"engine": str(settings.engine), "settings": dict(settings.settings)},
                size=settings.size,
                start_s=settings.start_s,
                cancel_s=settings.cancel_s,
                late_s=_LATE_S,
                attempts=2,
            )
        )

    @property
    def name(self) -> str:
        """The engine's name, for logs and errors."""
        return self._settings.name

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of the pieces.

        Raises:
            SpeechNotOpenError: The pool was never open; the engine reports the rate once it has
                loaded.
        """
        if not self._pool.about:
            raise SpeechNotOpenError(self.name)
        return int(self._pool.about["sample_rate_hz"])

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Start the workers and wait until each has loaded its engine.

        Leaving the block ends them within two seconds.

        Raises:
            SpeechEngineError: The engine cannot load.
            SpeechWorkerError: A process died or was not ready in time.
        """
        async with AsyncExitStack() as stack:
            with _as_speech_errors(self.name):
                await stack.enter_async_context(self._pool.open())
            yield

    async def synthesize(self, text: str) -> AsyncGenerator[SpeechPiece, None]:
        """Yield the pieces of a text; wait while all workers are busy.

        If a worker dies or hangs, it is replaced, and another one says the rest of the text, once.
        Cancelling is safe and drops the text.  Use ``contextlib.aclosing`` so that it is dropped at
        once, and not by the garbage collector.

        Raises:
            SpeechEngineError: The engine failed at this text.
            SpeechWorkerError: Two workers died, or the pool was closed; the pieces so far are
                valid, the rest is lost.
            SpeechNotOpenError: The pool is not open.
            WeightsHashError: The engine's weights were found damaged since.
        """
        if not self._pool.is_open:
            raise SpeechNotOpenError(self.name)
        if self._settings.weights is not None:
            self._settings.weights.check()
        silence_s = self._settings.silence_s + _CHARACTER_S * len(text)
        with _as_speech_errors(self.name):
            async with aclosing(self._pool.run(text.encode(), silence_s=silence_s)) as pieces:
                async for piece in pieces:
                    yield _piece(piece)


class WorkerVoice:
    """A ``TextToSpeech`` whose engine runs in worker processes."""

    def __init__(self) -> None:
        self._pool: WorkerPool | None = None

    def _worker_settings(self) -> WorkerSettings:
        """Return the settings of the workers; called at each opening."""
        raise NotImplementedError

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of the pieces: 22050 for espeak-ng and for most voices of Piper.

        Raises:
            SpeechNotOpenError: Outside of `open`; the engine reports the rate once it has loaded.
        """
        return self._open_pool().sample_rate_hz

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Start the workers and load the voice; leaving the block ends them.

        Raises:
            WeightsMissingError: The voice was not downloaded.
            SpeechEngineError: There is no such voice, or it cannot be loaded.
            SpeechWorkerError: A worker did not start.
        """
        pool = WorkerPool(self._worker_settings())
        async with pool.open():
            self._pool = pool
            try:
                yield self
            finally:
                self._pool = None

    def synthesize(self, text: str) -> AsyncGenerator[SpeechPiece, None]:
        """Yield the text as pieces with word times; Piper yields one for each sentence.

        Args:
            text: The text.  A sentence takes espeak-ng 5 to 10 ms; Piper takes 0.1 to 0.2 s for two
                seconds of speech, on two idle cores.

        Raises:
            SpeechNotOpenError: Outside of `open`.
            SpeechEngineError: The engine failed at this text.
            SpeechWorkerError: The worker died; the next text gets a new one.
            WeightsHashError: The voice was found damaged since it was loaded.
        """
        return self._open_pool().synthesize(text)

    def _open_pool(self) -> WorkerPool:
        if self._pool is None:
            raise SpeechNotOpenError(type(self).__name__)
        return self._pool


@contextmanager
def _as_speech_errors(name: str) -> Iterator[None]:
    """Translate the pool's errors into `SpeechError`."""
    try:
        yield
    except EngineLoadError as error:
        raise SpeechEngineError(f"{name} cannot load: {error}") from error
    except JobError as error:
        raise SpeechEngineError(f"{name}: {error}") from error
    except ChildError as error:
        raise SpeechWorkerError(str(error)) from error


def _piece(payload: bytes) -> SpeechPiece:
    (size,) = struct.unpack_from("<I", payload)
    words = tuple(WordTiming(*word) for word in json.loads(payload[4 : 4 + size]))
    return SpeechPiece(payload[4 + size :], words)
