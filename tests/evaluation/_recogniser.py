"""How long the recogniser takes, which shows whether the machine was too busy to measure on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

import trio

from bargein.speech import Recogniser, Transcript

BUSY_S = 0.12
"""The machine is too busy to judge a gap if the recogniser took longer for its words, in seconds.
On an idle core it takes 0.10 s for a short utterance, and words may end a gap."""


class Opened(Recogniser, Protocol):
    """A recogniser that is opened before it is used."""

    def open(self) -> AbstractAsyncContextManager[object]:
        """Open it."""
        ...


class Timed:
    """A recogniser whose answers are timed.

    Attributes:
        asked: When it was asked since `begin`, and how long it took, in seconds of trio's clock;
            what was cancelled counts, too, since its thread goes on.
    """

    def __init__(self, ears: Opened) -> None:
        """Wrap a recogniser."""
        self.asked: list[tuple[float, float]] = []
        self._ears = ears

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Open the recogniser."""
        async with self._ears.open():
            yield

    async def transcribe(self, pcm: bytes) -> Transcript:
        """Transcribe an utterance."""
        began_s = trio.current_time()
        try:
            return await self._ears.transcribe(pcm)
        finally:
            self.asked.append((began_s, trio.current_time() - began_s))

    def begin(self) -> None:
        """Forget the answers so far."""
        self.asked = []
