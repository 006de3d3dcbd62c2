"""The callers' voices and lines, synthesised before any call begins."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from itertools import pairwise

from bargein.speech import (
    ClauseSplitter,
    EspeakVoice,
    PiperVoice,
    SpeechPiece,
    TextToSpeech,
    resample,
)

RATE_HZ = 16_000

ESPEAK = {
    "ann": EspeakVoice("en-us+f3", words_per_minute=150, word_gap=1),
    "ben": EspeakVoice("en-us+m3", words_per_minute=160),
    "eve": EspeakVoice("en-us", words_per_minute=160),
}
"""Callers with an espeak-ng voice. Joe has the voice of piper that the agent has, too."""

SEED = 1
"""Of piper's voices: they say the same in each run."""

HESITATION = "..."
"""Marks a pause in a line where the caller stops to think."""


class Voices:
    """Speaks for all callers; keeps what was synthesised."""

    def __init__(self, engines: Mapping[str, TextToSpeech]) -> None:
        """Use open engines, by the name of the caller."""
        self._engines = engines
        self._kept: dict[tuple[str, str], SpeechPiece] = {}

    async def say(self, who: str, text: str) -> bytes:
        """Return a caller's line as PCM16 mono 16 kHz."""
        return (await self._speak(who, text)).pcm

    async def hesitate(self, who: str, text: str, pause_s: float) -> tuple[bytes, list[float]]:
        """Return a sentence with pauses to think, and where they begin.

        The sentence is spoken as a whole and split between two words, so that its intonation does
        not fall before the pause.

        Args:
            who: The caller.
            text: The sentence, with ``...`` at each pause.
            pause_s: The length of each pause, in seconds.

        Returns:
            PCM16 mono 16 kHz, and where in it each pause begins, in seconds.
        """
        parts = [part.split() for part in text.split(HESITATION)]
        piece = await self._speak(who, " ".join(word for part in parts for word in part))
        starts = [word.start_s for word in piece.words]
        at = [sum(len(part) for part in parts[: n + 1]) for n in range(len(parts) - 1)]
        edges = [0, *(2 * round(starts[word] * RATE_HZ) for word in at), len(piece.pcm)]
        pcm, begins = b"", []
        for left, right in pairwise(edges):
            if pcm:
                begins.append(len(pcm) / 2 / RATE_HZ)
                pcm += bytes(2 * round(pause_s * RATE_HZ))
            pcm += piece.pcm[left:right]
        return pcm, begins

    async def _speak(self, who: str, text: str) -> SpeechPiece:
        if (who, text) not in self._kept:
            engine = self._engines[who]
            pieces = [piece async for piece in engine.synthesize(text)]
            pcm = b"".join(piece.pcm for piece in pieces)
            wide = resample(pcm, engine.sample_rate_hz, RATE_HZ)
            self._kept[who, text] = SpeechPiece(wide, pieces[0].words)
        return self._kept[who, text]


class Alone:
    """A voice that is opened anew for each text, so that no text before it changes its sound.

    What piper makes of a text depends on its seed and on what it said before, and that on the cases
    that are played.
    """

    def __init__(self, open_voice: Callable[[], AbstractAsyncContextManager[TextToSpeech]]) -> None:
        """Open nothing yet.

        Args:
            open_voice: Opens the voice.
        """
        self._open = open_voice
        self.sample_rate_hz = 0  # until it has said something

    async def synthesize(self, text: str) -> AsyncGenerator[SpeechPiece, None]:
        """Yield the speech piece by piece."""
        async with self._open() as voice, aclosing(voice.synthesize(text)) as pieces:
            self.sample_rate_hz = voice.sample_rate_hz
            said = [piece async for piece in pieces]
        for piece in said:  # behind the block: a generator must not keep a voice open
            yield piece


class Rehearsed:
    """A voice with prepared texts, which take no time to synthesise."""

    def __init__(self, voice: TextToSpeech) -> None:
        """Wrap a voice, which has to be open when it speaks."""
        self._voice = voice
        self._kept: dict[str, list[SpeechPiece]] = {}

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of the pieces."""
        return self._voice.sample_rate_hz

    async def learn(self, text: str) -> None:
        """Prepare a text, clause by clause as a call would request it."""
        splitter = ClauseSplitter()
        for clause in [*splitter.feed(text), *splitter.flush()]:
            said = clause.strip()
            self._kept[said] = [piece async for piece in self._voice.synthesize(said)]

    async def synthesize(self, text: str) -> AsyncGenerator[SpeechPiece, None]:
        """Yield the speech piece by piece."""
        if text in self._kept:
            for piece in self._kept[text]:
                yield piece
            return
        async with aclosing(self._voice.synthesize(text)) as pieces:
            async for piece in pieces:
                yield piece


@asynccontextmanager
async def open_voices() -> AsyncIterator[tuple[Voices, Rehearsed]]:
    """Open every voice; yield the callers' voices and the agent's."""
    piper = PiperVoice(seed=SEED)
    joe = Alone(PiperVoice(seed=SEED).open)
    async with AsyncExitStack() as stack:
        for voice in ESPEAK.values():
            await stack.enter_async_context(voice.open())
        await stack.enter_async_context(piper.open())
        yield Voices({**ESPEAK, "joe": joe}), Rehearsed(piper)
