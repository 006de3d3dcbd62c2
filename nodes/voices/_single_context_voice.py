"""The driver of voices whose audio names no utterance: one utterance at a time on a socket.

Rule 1. Each utterance has its own socket; one said to its end leaves the socket to the next.
Rule 2. An interruption sends the vendor's message that stops the audio and closes the socket, so
late audio never reaches another utterance. A spare socket is open by then for the next utterance.
Rule 3. When a line is lost, an utterance without any audio starts over on the next line; one with
some audio fails, because nobody knows what is missing.
Rule 4. At most `most_flushes` flushes wait for an answer: text is sent at once, and the next flush
stands for all of it. A socket is not flushed more often than the vendor allows; one with few
flushes left gets no further utterance.
Rule 5. A vendor that owes audio and sends none for `SessionLimits.answer_s` has failed.
Rule 6. A line counts as sound once it has brought audio; a greeting proves nothing.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, Literal, Protocol, final

import structlog
import trio

from bargein.nodes.speech import SpeechNotOpenError, SpeechPiece, TextSaid, VoiceStyle
from bargein.nodes.vendors import (
    Reopened,
    SessionLimits,
    VendorAddress,
    VendorError,
    VendorSession,
    open_session,
)
from bargein.routes.service_nursery import open_service_nursery

from ._flush_limit import FlushLimit
from ._multi_context_voice import MOST_WAITING_S

log = structlog.get_logger()

CLOSE_S = 1.0
"""How long sending a cancel may take, in seconds; it only has to be queued."""

SPARES = 1
"""How many idle sockets are kept open for the next utterance."""


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


class SocketVoice:
    """A `StreamingTTS` with a socket for each utterance; open it before use."""

    times: Literal["words", "none"] = "none"

    def __init__(
        self,
        address_of: Callable[[VoiceStyle], VendorAddress],
        codec: Callable[[VoiceStyle], SpeakCodec],
        *,
        sample_rate_hz: int,
        limits: SessionLimits | None = None,
        dial: Callable[[], Awaitable[trio.abc.Stream]] | None = None,
    ) -> None:
        """Configure the voice; nothing connects yet.

        Args:
            address_of: Returns the address and key for a style.
            codec: Makes the codec of an utterance.
            sample_rate_hz: Sample rate of the audio.
            limits: The limits of a session; ``None`` for the defaults.
            dial: Opens the stream of a connection; ``None`` connects to the address.
        """
        self._address_of = address_of
        self._codec = codec
        self._sample_rate_hz = sample_rate_hz
        self._limits = limits or SessionLimits()
        self._dial = dial
        self._nursery: trio.Nursery | None = None
        self._idle: list[_Socket] = []

    @property
    def sample_rate_hz(self) -> int:
        """Sample rate of the audio."""
        return self._sample_rate_hz

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Keep the voice open while the block runs; entering does not wait for a line."""
        async with open_service_nursery("the voice is closed") as self._nursery:
            self._add_spare(VoiceStyle())
            try:
                yield
            finally:
                self._nursery = None
                self._idle.clear()

    def _new_socket(self, style: VoiceStyle) -> _Socket:
        assert self._nursery is not None  # the voice is open
        limit = FlushLimit(self._codec(style).most_flushes_a_minute)
        socket = _Socket(self._address_of(style), self._limits, limit, self._dial)
        self._nursery.start_soon(socket.run)
        return socket

    def _add_spare(self, style: VoiceStyle) -> None:
        """Open a spare socket for the next utterance, while the voice is open."""
        self._idle = [socket for socket in self._idle if not socket.is_lost]
        if self._nursery is not None and len(self._idle) < SPARES:
            self._idle.append(self._new_socket(style))

    def _socket_for(self, style: VoiceStyle) -> _Socket:
        url = self._address_of(style).url
        for socket in self._idle:
            if socket.url == url and not socket.is_lost:
                self._idle.remove(socket)
                return socket
        return self._new_socket(style)

    @asynccontextmanager
    async def open_context(self, style: VoiceStyle) -> AsyncIterator[SocketVoiceContext]:
        """Say one utterance while the block runs; see `StreamingTTS.open_context`.

        Raises:
            SpeechNotOpenError: The voice is not open.
        """
        if self._nursery is None:
            raise SpeechNotOpenError(type(self).__name__)
        socket = self._socket_for(style)
        self._add_spare(style)
        most_bytes = round(MOST_WAITING_S * 2 * self._sample_rate_hz)
        answer_s = self._limits.answer_s
        context = SocketVoiceContext(socket, self._codec(style), most_bytes, answer_s)
        socket.follow(context)
        try:
            yield context
        finally:
            socket.follow(None)
            if context.is_all_said and len(self._idle) <= SPARES and socket.is_of_use:
                self._idle.append(socket)
            else:
                with trio.move_on_after(CLOSE_S, shield=True):
                    await context.cancel()
                socket.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {self._address_of(VoiceStyle()).url.partition('?')[0]}>"


@final
class _Socket:
    """One socket, and the utterance on it."""

    def __init__(
        self,
        address: VendorAddress,
        limits: SessionLimits,
        flush_limit: FlushLimit,
        dial: Callable[[], Awaitable[trio.abc.Stream]] | None,
    ) -> None:
        self.address = address
        self.url = address.url
        self.flush_limit = flush_limit
        self._limits = limits
        self._dial = dial
        self._scope = trio.CancelScope()
        self._context: SocketVoiceContext | None = None
        self._session: VendorSession | None = None
        self._opened = trio.Event()
        self._error: VendorError | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the session was given up or closed."""
        return self._error is not None or self._scope.cancel_called

    @property
    def is_of_use(self) -> bool:
        """Whether another utterance can use the socket."""
        return not self.is_lost and not self.flush_limit.is_scarce

    def follow(self, context: SocketVoiceContext | None) -> None:
        """Route what the vendor sends to an utterance; ``None`` routes it nowhere."""
        self._context = context

    def close(self) -> None:
        """Close the socket at once."""
        self._scope.cancel(reason="the utterance was cut")

    @property
    def lines(self) -> int:
        """The number of lines opened so far."""
        return 0 if self._session is None else self._session.lines

    async def ready(self) -> None:
        """Wait until a line is open.

        Raises:
            VendorError: The session was given up.
        """
        await self._opened.wait()
        if self._error is not None:
            raise self._error
        assert self._session is not None  # it is open
        await self._session.ready()

    async def send_on(self, line: int, message: str) -> bool:
        """Send a message on one line, and on no later one; return whether it was sent.

        Raises:
            VendorError: The session was given up.
        """
        assert self._session is not None  # a line was opened before
        return await self._session.send_on(line, message)

    async def run(self) -> None:
        """Run the session until it is given up or closed."""
        with self._scope:
            async with open_session(self.address, self._limits, dial=self._dial) as session:
                self._session = session
                self._opened.set()
                try:
                    while True:
                        if not await self._hear(await session.receive()):
                            session.doubt()
                except VendorError as error:
                    self._error = error
                    if self._context is not None:
                        self._context.fail(error)

    async def _hear(self, data: str | bytes | Reopened) -> bool:
        """Pass a message or audio to the utterance; return whether it was part of its speech."""
        context = self._context
        if context is None:
            return False
        if isinstance(data, Reopened):
            await context.send_waiting()
            return True
        if isinstance(data, bytes):
            context.hear(data)
            return True
        is_answer = False
        try:
            message = json.loads(data)
            if not isinstance(message, dict):
                raise TypeError("no object")
            is_answer = context.read(message)
        except (KeyError, TypeError, ValueError, IndexError, RecursionError) as error:
            kind = type(error).__name__
            log.warning("vendor_message_unreadable", vendor=self.address.vendor, error=kind)
        if is_answer:
            await context.send_waiting()
        return is_answer


@final
class SocketVoiceContext:
    """One utterance on its way through a socket; see `VoiceContext`."""

    def __init__(
        self, socket: _Socket, codec: SpeakCodec, most_waiting_bytes: int, answer_s: float
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
