"""One utterance on its way through a voice that streams: text in, the audio of each clause out.

Each clause is flushed, so that its audio has an end: what a voice without word times was heard to
say is then known to the clause.  A clause goes to the voice when little of those before it is
unheard: what is cut first was never asked for, and no audio of it fills the memory.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, Callable

import trio

from ._errors import SpeechEngineError
from ._protocols import SpeechPiece
from ._streaming_protocols import StreamingTTS, TextSaid, VoiceContext, VoiceStyle

CLAUSES_WAITING = 4096
"""How many clauses may wait to be said; an answer of that length is half a day of speech."""

AHEAD_S = 3.0
"""How much that is unheard keeps the next clause back: three times what a vendor on another
continent takes to its first sound."""

CHARS_PER_S = 15.0
"""How fast a clause is said of which no audio has come yet: 150 words a minute at 6 characters."""

NEAR_S = 1.0
"""With so little unheard the next clause goes to the voice, whatever was to come; one a second."""

LEAST_WAIT_S = 0.1
"""How soon it is asked again how much is unheard, at the earliest."""


class StreamedText:
    """The text of one utterance, and the context that says it."""

    def __init__(self, played_s: Callable[[], float]) -> None:
        """Begin with no text, and no context.

        Args:
            played_s: Returns how much of its audio was heard.
        """
        self._played_s = played_s
        self._given_s = self._whole_s = 0.0  # all its audio so far, and that of whole clauses
        self._newest_s = 0.0  # the piece behind it, which may be kept back until the next one comes
        self._asked: deque[float] = deque()  # how long each other clause will be that was asked for
        self._asked_at_s = -math.inf
        self._news = trio.Event()  # a clause was asked for, or came
        self._send, self._texts = trio.open_memory_channel[str](CLAUSES_WAITING)
        self._context: VoiceContext | None = None
        self._rate_hz = 1  # of its audio
        self._error: Exception | None = None
        self._opened = trio.Event()
        self.is_joined = False
        """Whether the sound of the clause that came last is part of that of the one before it."""
        self._carrying = trio.CancelScope()
        self._receiving = trio.CancelScope()

    def add(self, text: str) -> None:
        """Have a clause said behind those before it.

        Args:
            text: The clause, with its spaces.
        """
        self._send.send_nowait(text)

    def finish(self) -> None:
        """Tell that no further clause will come."""
        self._send.close()

    def close(self) -> None:
        """Give the context back: all is said, or the rest is not to be heard any more."""
        self._carrying.cancel(reason="nothing more of the utterance is to be heard")
        self._receiving.cancel(reason="nothing more of the utterance is to be heard")

    async def carry(self, voice: StreamingTTS, style: VoiceStyle) -> None:
        """Hold a context until all is said, and send the text there as it comes.

        What fails is raised by `pieces`.  Cancelling it cancels the context.

        Args:
            voice: Says it.
            style: How.
        """
        try:
            with self._carrying:
                async with voice.open_context(style) as context:
                    self._context, self._rate_hz = context, voice.sample_rate_hz
                    self._opened.set()
                    async for text in self._texts:
                        await self._until_due()
                        self._asked.append(len(text) / CHARS_PER_S)
                        self._asked_at_s = trio.current_time()
                        self._has_news()
                        await context.send(text)
                        await context.flush()
                    await context.end()
                    await trio.sleep_forever()  # until it is closed
        except Exception as error:  # noqa: BLE001  # whoever waits for audio raises it
            self._error = error
        finally:
            self._context = None
            self._opened.set()
            self._has_news()

    async def _until_due(self) -> None:
        """Wait until little of what was asked for is unheard."""
        while (wait_s := self._wait_s()) > 0:
            with trio.move_on_after(max(wait_s, LEAST_WAIT_S)):
                await self._news.wait()

    def _wait_s(self) -> float:
        """Return how long the next clause is to wait, if nothing more gets known."""
        played_s = self._played_s()
        planned_s = self._whole_s + sum(self._asked) - played_s
        unheard_s = self._given_s - played_s
        # What was asked for is shorter than it seemed, or its end is not told: silence is near.
        ahead_s = AHEAD_S + getattr(self._context, "flush_wait_s", 0.0)
        near_s = max(unheard_s - NEAR_S, self._asked_at_s + NEAR_S - trio.current_time())
        return min(planned_s - ahead_s, near_s)

    def _has_news(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def asked(self) -> None:
        """Wait until the voice was asked for the next clause, or never will be."""
        await self._opened.wait()
        while self._context is not None and not self._asked:
            await self._news.wait()

    async def pieces(self) -> AsyncGenerator[SpeechPiece, None]:
        """Yield the audio of the next clause; it ends early once this is closed.

        Raises:
            Exception: Whatever the voice has raised.
            SpeechEngineError: It has ended its speech before the clause.
        """
        await self._opened.wait()
        while self._context is not None:
            piece: SpeechPiece | TextSaid | None = None
            with trio.CancelScope() as self._receiving:
                piece = await self._context.receive()
            if self._receiving.cancelled_caught:
                return
            if isinstance(piece, TextSaid):
                self.is_joined = piece.joined
                self._given_s, self._newest_s = self._given_s + self._newest_s, 0.0
                self._whole_s = self._given_s
                self._asked.popleft()
                self._has_news()
                return
            if piece is None:
                raise SpeechEngineError("the voice ended its speech before all text was said")
            self._given_s += self._newest_s
            self._newest_s = len(piece.pcm) / 2 / self._rate_hz
            yield piece
        if self._error is not None or not self._carrying.cancel_called:
            raise self._error or SpeechEngineError("the voice was closed in mid-text")
