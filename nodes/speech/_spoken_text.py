"""Follows which part of its text a voice's context has spoken."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import final

from bargein.bridge.playout.word_alignment import SaidWords

from ._speech_protocols import SpeechPiece
from ._streaming_protocols import StreamingTTS, TextSaid, VoiceContext, VoiceStyle

CLOSE_S = 0.002
"""The error of word times, in seconds."""


LOOKAHEAD_CHARS = 400
"""In how much of the text a word is looked for: more than 32 words, which are compared at most."""


@dataclass(frozen=True, slots=True)
class SpokenText:
    """The text of a context, split at a moment of its audio."""

    spoken: str
    """The text spoken by then, up to the last whole word, or up to the last whole flush without
    word times."""
    remaining: str
    """The rest of what was sent, spaces included."""


@final
class FollowedContext:
    """A `VoiceContext` that also knows what it has spoken; made by `open_followed_context`."""

    def __init__(self, context: VoiceContext, sample_rate_hz: int) -> None:
        """Follow a context from its beginning.

        Args:
            context: The context of the voice.
            sample_rate_hz: The sample rate of its pieces.
        """
        self._context = context
        self._rate_hz = sample_rate_hz
        self._text = ""
        self._flushed: deque[int] = deque()  # the length of the text at each unanswered flush
        self._audio_s = 0.0
        self._said = SaidWords()  # its words since, as it spells them
        self._chars = 0
        self._marks: list[tuple[float, int]] = []  # (time, length of the text spoken by then)

    async def send(self, text: str) -> None:
        """Add text; see `VoiceContext.send`."""
        await self._context.send(text)
        self._text += text

    async def flush(self) -> None:
        """Have all text so far spoken; see `VoiceContext.flush`."""
        await self._context.flush()
        self._flushed.append(len(self._text))

    async def end(self) -> None:
        """Declare that no more text will come; see `VoiceContext.end`."""
        await self._context.end()

    async def receive(self) -> SpeechPiece | TextSaid | None:
        """Return the next piece; see `VoiceContext.receive`."""
        piece = await self._context.receive()
        if isinstance(piece, SpeechPiece):
            for word in piece.words:
                self._said.add((word.text,))
                self._mark(self._audio_s + word.end_s, self._chars + self._newly_said())
            self._audio_s += len(piece.pcm) / 2 / self._rate_hz
        elif isinstance(piece, TextSaid):
            self._mark(self._audio_s, self._flushed.popleft() if self._flushed else self._chars)
        else:
            self._mark(self._audio_s, len(self._text))
        return piece

    def spoken(self, played_s: float = math.inf) -> SpokenText:
        """Return the text spoken by a moment; works at any time, even after the context was left.

        Args:
            played_s: How much of its audio was played, in seconds; by default all of it.
        """
        chars = max((chars for at_s, chars in self._marks if at_s <= played_s + CLOSE_S), default=0)
        return SpokenText(self._text[:chars], self._text[chars:])

    def _newly_said(self) -> int:
        """Return how many more characters are surely said, and forget the words that say them."""
        rest = self._text[self._chars : self._chars + LOOKAHEAD_CHARS]
        said = self._said.length_in(rest)
        if said:
            self._said.clear()
        return said

    def _mark(self, at_s: float, chars: int) -> None:
        self._chars = max(self._chars, chars)
        self._marks.append((at_s, self._chars))


@asynccontextmanager
async def open_followed_context(
    voice: StreamingTTS, style: VoiceStyle
) -> AsyncIterator[FollowedContext]:
    """Say one utterance while the block runs, and follow what was spoken of it.

    Leaving the block early cancels the rest, as ``voice.open_context()`` does.

    Args:
        voice: A streaming voice.
        style: How to say it.
    """
    async with voice.open_context(style) as context:
        yield FollowedContext(context, voice.sample_rate_hz)
