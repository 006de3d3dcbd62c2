"""One utterance on a socket of its own, text in and audio out.

Rule 1. When a line is lost, an utterance without any audio starts over on the next line; one with
some audio fails, because nobody knows what is missing.
Rule 2. At most `most_flushes` flushes wait for an answer: text is sent at once, and the next flush
stands for all of it. A socket is not flushed more often than the vendor allows; one with few
flushes left gets no further utterance.
Rule 3. A vendor that owes audio and sends none for `SessionLimits.answer_s` has failed.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, final

import trio

from bargein.nodes.speech import SpeechPiece, TextSaid
from bargein.nodes.vendors import VendorError

from ._multi_context_voice import MOST_WAITING_S
from ._single_context_socket import UtteranceSocket


class SpeakCodec(Protocol):
    """Translates between one utterance and a vendor's messages."""

    @property
    def most_flushes(self) -> int:
        """How many flushes may wait for an answer."""
        ...

    @property
    def most_flushes_a_minute(self) -> int | None:
        """How often a socket may be flushed in a minute; ``None`` for no limit."""
        ...

    def text(self, text: str) -> Sequence[str]:
        """Return the messages that add text."""
        ...

    def flush(self) -> Sequence[str]:
        """Return the messages that make the vendor say all text so far."""
        ...

    def cancel(self) -> Sequence[str]:
        """Return the messages that stop the audio."""
        ...

    def answers_flush(self, message: Mapping[str, Any]) -> bool:
        """Return whether a message says that all audio up to a flush was sent.

        Args:
            message: A JSON object, otherwise unchecked.

        Raises:
            VendorError: The vendor gave up the utterance.
            Exception: `message` is not one of the vendor's: KeyError, TypeError.
        """
        ...


@final
class SocketVoiceContext:
    """One utterance on its way through a socket; see `VoiceContext`."""

    def __init__(
        self, socket: UtteranceSocket, codec: SpeakCodec, most_waiting_bytes: int, answer_s: float
    ) -> None:
        self._socket = socket
        self._codec = codec
        self._most_bytes = most_waiting_bytes
        self._answer_s = answer_s
        self._heard_at_s = 0.0  # when something last came, or the vendor began to owe something
        self._texts: list[str] = []
        self._sent_texts = 0
        self._line = 0  # the line to which they were sent
        self._sending = trio.Lock()
        self._asked_flushes = self._sent_flushes = 0  # ours, and those covered by sent ones
        self._sent: deque[int] = deque()  # how many of ours each unanswered one covers
        self._flush_at_s = math.inf  # when a delayed flush is due
        self._pieces: deque[SpeechPiece | TextSaid] = deque()
        self._waiting_bytes = 0
        self._half = b""
        self._has_begun = self._is_ended = False
        self._error: VendorError | None = None
        self._news = trio.Event()

    @property
    def is_all_said(self) -> bool:
        """Whether all text has its audio, and no more text will come."""
        waits = self._sent or self._sent_flushes < self._asked_flushes
        return self._is_ended and not waits and self._error is None

    @property
    def flush_wait_s(self) -> float:
        """How long a flush may be delayed; see `VoiceContext`."""
        return self._socket.flush_limit.every_s

    @property
    def is_held_back(self) -> bool:
        """Whether a flush is being delayed; see `VoiceContext`."""
        return self._flush_at_s < math.inf and not self._sent

    # --- for the speaker ------------------------------------------------------------------------

    async def send(self, text: str) -> None:
        """Add text; see `VoiceContext.send`."""
        self._check()
        number = len(self._texts)
        self._texts.append(text)
        try:
            await self._push()
        except trio.Cancelled:
            if self._sent_texts <= number:
                self._texts.pop()
            raise

    async def flush(self) -> None:
        """Have all text so far said; see `VoiceContext.flush`."""
        self._check()
        self._asked_flushes += 1
        await self._push()

    async def end(self) -> None:
        """Say that no more text will come; see `VoiceContext.end`."""
        self._check()
        self._is_ended = True
        self._news.set()
        await trio.lowlevel.checkpoint()

    async def receive(self) -> SpeechPiece | TextSaid | None:
        """Return the next piece; see `VoiceContext.receive`."""
        await trio.lowlevel.checkpoint()
        while not self._pieces:
            self._check()
            if self.is_all_said:
                return None
            self._news = trio.Event()
            with trio.move_on_at(min(self._late_at_s(), self._flush_at_s)):
                await self._news.wait()
            if trio.current_time() >= self._flush_at_s:
                await self.send_waiting()
            if trio.current_time() >= self._late_at_s():
                self.fail(VendorError(self._vendor, f"no audio for {self._answer_s:g} s"))
        piece = self._pieces.popleft()
        if isinstance(piece, SpeechPiece):
            self._waiting_bytes -= len(piece.pcm)
        return piece

    def _late_at_s(self) -> float:
        """When the vendor must have sent something; infinity if it owes nothing."""
        return self._heard_at_s + self._answer_s if self._sent else math.inf

    def _check(self) -> None:
        if self._error is not None:
            raise self._error

    # --- for the socket -------------------------------------------------------------------------

    async def send_waiting(self) -> None:
        """Send what waited for an answer or for another line."""
        with suppress(VendorError):  # receive() raises it
            await self._push()

    async def _push(self) -> None:
        """Send what was not sent; everything on a new line."""
        async with self._sending:
            while self._error is None:
                await self._socket.ready()
                if self._line != self._socket.lines and not self._start_line():
                    return
                if self._sent_texts < len(self._texts):
                    if await self._say(self._codec.text(self._texts[self._sent_texts])):
                        self._sent_texts += 1
                elif not await self._flush():
                    return

    def _start_line(self) -> bool:
        """Move to another line if no audio has come yet; return whether that is possible."""
        if self._has_begun:
            self.fail(VendorError(self._vendor, "lost the connection in mid-utterance"))
            return False
        self._line, self._sent_texts, self._sent_flushes = self._socket.lines, 0, 0
        self._sent.clear()
        return True

    async def _flush(self) -> bool:
        """Flush all text so far; return False if there is nothing to flush, or it has to wait."""
        owed = self._asked_flushes - self._sent_flushes
        self._flush_at_s = math.inf
        if not owed or len(self._sent) >= self._codec.most_flushes:
            return False
        limit = self._socket.flush_limit
        if trio.current_time() < limit.next_at_s:
            self._flush_at_s = limit.next_at_s
            self._news.set()  # receive() then sends the flush on time
            return False
        limit.spend()
        if not self._sent:
            self._heard_at_s = trio.current_time()
            self._news.set()  # receive() has a deadline now
        self._sent.append(owed)
        self._sent_flushes += owed
        is_sent = False
        try:
            is_sent = await self._say(self._codec.flush())
        finally:
            if not is_sent:
                self._sent.pop()
                self._sent_flushes -= owed
        return True

    async def _say(self, messages: Sequence[str]) -> bool:
        for message in messages:
            if not await self._socket.send_on(self._line, message):
                return False
        return True

    def hear(self, data: bytes) -> None:
        """Handle audio, which may split a sample between messages; ignore it after a failure."""
        if self._error is not None:
            return
        self._has_begun, self._heard_at_s = True, trio.current_time()
        whole = self._half + data
        self._half = whole[len(whole) & ~1 :]
        pcm = whole[: len(whole) & ~1]
        self._pieces.append(SpeechPiece(pcm))
        self._waiting_bytes += len(pcm)
        if self._waiting_bytes > self._most_bytes:
            self.fail(
                VendorError(self._vendor, f"more than {MOST_WAITING_S:g} s of its audio wait")
            )
        self._news.set()

    def read(self, message: Mapping[str, Any]) -> bool:
        """Take in a message of the vendor's; return whether it answers a flush."""
        try:
            is_answer = self._codec.answers_flush(message)
        except VendorError as error:
            self.fail(error)
            return False
        if is_answer and self._sent:
            self._has_begun, self._heard_at_s = True, trio.current_time()
            self._half = b""
            more = self._sent.popleft() - 1
            self._pieces += [TextSaid(), *[TextSaid(joined=True)] * more]
            self._news.set()
        return is_answer

    def fail(self, error: VendorError) -> None:
        """Make whoever waits for audio raise this error."""
        self._error = self._error or error
        self._news.set()

    async def cancel(self) -> None:
        """Cancel the utterance at the vendor, if it was started and is not all said."""
        if self._sent_texts and not self.is_all_said and self._error is None:
            with suppress(VendorError):
                await self._say(self._codec.cancel())

    @property
    def _vendor(self) -> str:
        return self._socket.address.vendor
