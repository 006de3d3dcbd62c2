"""One utterance in a streaming voice: text in, the audio of each clause out.

Each clause is flushed, so that its audio has a known end: without word times, what was heard is
then known to the clause. A clause is sent to the voice only when little earlier audio is unheard,
so that an interruption wastes little, and unheard audio does not fill the memory.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, Callable
from dataclasses import replace

import trio

from bargein.bridge.audio.pcm import WholeSamples

from ._errors import SpeechEngineError
from ._protocols import SpeechPiece
from ._streaming_protocols import StreamingTTS, TextSaid, VoiceContext, VoiceStyle

CLAUSES_WAITING = 4096
"""How many clauses may wait; an answer of that length would last half a day."""

AHEAD_S = 3.0
"""How much unheard speech delays the next clause, in seconds: three times what a vendor on
another continent takes to its first audio."""

CHARS_PER_S = 15.0
"""The assumed speed of a clause without audio: 150 words a minute of 6 characters."""

NEAR_S = 1.0
"""With only this much unheard, in seconds, the next clause is sent anyway, at most one a second."""

LEAST_WAIT_S = 0.1
"""The shortest wait before checking again how much is unheard, in seconds."""


class StreamedText:
    """The text of one utterance, and its context at the voice."""

    def __init__(self, played_s: Callable[[], float]) -> None:
        """Start without text and without a context.

        Args:
            played_s: Returns how much of its audio was heard, in seconds.
        """
        self._played_s = played_s
        self._audio_s = self._whole_s = 0.0  # the length of all audio so far, and of whole clauses
        self._newest_s = 0.0  # of the newest piece, which may be delayed until the next one comes
        self._asked: deque[float] = deque()  # estimated lengths of the other requested clauses
        self._asked_at_s = -math.inf
        self._changed = trio.Event()  # a clause was requested or has come
        self._send, self._texts = trio.open_memory_channel[str](CLAUSES_WAITING)
        self._context: VoiceContext | None = None
        self._rate_hz = 1  # of its audio
        self._samples = WholeSamples()  # a clause may end in mid-sample
        self._error: Exception | None = None
        self._opened = trio.Event()
        self.is_joined = False
        """Whether the audio of the last clause came with that of the one before."""
        self._carrying = trio.CancelScope()
        self._receiving = trio.CancelScope()

    def add(self, text: str) -> None:
        """Queue a clause."""
        self._send.send_nowait(text)

    def finish(self) -> None:
        """Declare that no further clause will come."""
        self._send.close()

    def close(self) -> None:
        """Close the context, because all was said or the rest will not be heard."""
        self._carrying.cancel(reason="nothing more of the utterance is to be heard")
        self._receiving.cancel(reason="nothing more of the utterance is to be heard")

    async def carry(self, voice: StreamingTTS, style: VoiceStyle) -> None:
        """Open a context, send the text as it comes, and stay until all is said.

        `pieces` raises what fails here. Cancelling cancels the context.
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
                        self._has_changed()
                        await context.send(text)
                        await context.flush()
                    await context.end()
                    await trio.sleep_forever()  # until close() is called
        except Exception as error:  # noqa: BLE001  # pieces() raises it
            self._error = error
        finally:
            self._context = None
            self._opened.set()
            self._has_changed()

    async def _until_due(self) -> None:
        """Wait until little of the requested speech is unheard."""
        while (wait_s := self._wait_s()) > 0:
            with trio.move_on_after(max(wait_s, LEAST_WAIT_S)):
                await self._changed.wait()

    def _wait_s(self) -> float:
        """Return how long the next clause has to wait, as far as is known."""
        played_s = self._played_s()
        planned_s = self._whole_s + sum(self._asked) - played_s
        unheard_s = self._audio_s - played_s
        # Silence is near if the speech is shorter than estimated, or its end was not reported.
        ahead_s = AHEAD_S + getattr(self._context, "flush_wait_s", 0.0)
        near_s = max(unheard_s - NEAR_S, self._asked_at_s + NEAR_S - trio.current_time())
        return min(planned_s - ahead_s, near_s)

    def _has_changed(self) -> None:
        self._changed.set()
        self._changed = trio.Event()

    async def asked(self) -> None:
        """Wait until the next clause was requested from the voice, or never will be."""
        await self._opened.wait()
        while self._context is not None and not self._asked:
            await self._changed.wait()

    async def pieces(self) -> AsyncGenerator[SpeechPiece, None]:
        """Yield the audio of the next clause; end early if this is closed.

        Raises:
            Exception: What the voice raised.
            SpeechEngineError: The voice ended its speech before the clause.
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
                self._audio_s, self._newest_s = self._audio_s + self._newest_s, 0.0
                self._whole_s = self._audio_s
                self._asked.popleft()
                self._has_changed()
                return
            if piece is None:
                raise SpeechEngineError("the voice ended its speech before all text was said")
            self._audio_s += self._newest_s
            self._newest_s = len(piece.pcm) / 2 / self._rate_hz
            yield replace(piece, pcm=self._samples.push(piece.pcm))
        if self._error is not None or not self._carrying.cancel_called:
            raise self._error or SpeechEngineError("the voice was closed in mid-text")
