"""One utterance on its way through a voice that streams: text in, the audio of each clause out.

Each clause is flushed, so that its audio has an end: what a voice without word times was heard to
say is then known to the clause.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

import trio

from ._errors import SpeechEngineError
from ._protocols import SpeechPiece
from ._streaming_protocols import StreamingTTS, TextSaid, VoiceContext, VoiceStyle

CLAUSES_WAITING = 4096
"""How many clauses may wait to be said; an answer of that length is half a day of speech."""


class StreamedText:
    """The text of one utterance, and the context that says it."""

    def __init__(self) -> None:
        """Begin with no text, and no context."""
        self._send, self._texts = trio.open_memory_channel[str](CLAUSES_WAITING)
        self._context: VoiceContext | None = None
        self._error: Exception | None = None
        self._opened = trio.Event()
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
                    self._context = context
                    self._opened.set()
                    async for text in self._texts:
                        await context.send(text)
                        await context.flush()
                    await context.end()
                    await trio.sleep_forever()  # until it is closed
        except Exception as error:  # noqa: BLE001  # whoever waits for audio raises it
            self._error = error
        finally:
            self._context = None
            self._opened.set()

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
            if self._receiving.cancelled_caught or isinstance(piece, TextSaid):
                return
            if piece is None:
                raise SpeechEngineError("the voice ended its speech before all text was said")
            yield piece
        if self._error is not None or not self._carrying.cancel_called:
            raise self._error or SpeechEngineError("the voice was closed in mid-text")
